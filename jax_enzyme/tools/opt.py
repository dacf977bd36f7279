"""`jax-enzyme opt`: text in, passes by name, text out."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from jax_enzyme.errors import CompileError
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import ReadError, read
from jax_enzyme.ir.writer import to_text
from jax_enzyme.tools.passes import PASSES, Pass


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", help="LLVM IR as text or bitcode; - is standard input")
    parser.add_argument("--pass", dest="passes", nargs="+", default=[], metavar="NAME", help="passes, in order")
    parser.add_argument("--print-after-all", action="store_true", help="print the module after every pass")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="where the result goes")
    parser.add_argument("--list", action="store_true", help="list the passes and stop")


def main(arguments: argparse.Namespace) -> int:
    if arguments.list:
        width = max(map(len, PASSES))
        print("\n".join(f"{p.name:{width}}  {p.summary}" for p in PASSES.values()))
        return 0
    chosen = [_pass(name) for name in arguments.passes]
    module = _read(arguments.file)
    for one in chosen:
        module = one.run(module)
        if arguments.print_after_all:
            print(f"; ---- after {one.name} ----\n{to_text(module)}", file=sys.stderr)
    _write(arguments.output, to_text(module))
    return 0


def _pass(name: str) -> Pass:
    if name in PASSES:
        return PASSES[name]
    near = difflib.get_close_matches(name, PASSES)
    remedy = f"did you mean {' or '.join(near)}?" if near else "`jax-enzyme opt --list` names them all"
    raise CompileError(f"there is no pass {name!r}", remedy=remedy)


def _read(name: str) -> Module:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CompileError(f"cannot read {name}: {error.strerror}") from error
    try:
        return read(data if data[:2] == b"BC" else data.decode())
    except (ReadError, UnicodeDecodeError) as error:
        raise CompileError(str(error), "standard input" if name == "-" else name) from error


def _write(name: str, text: str) -> None:
    if name == "-":
        sys.stdout.write(text)
        return
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CompileError(f"cannot write {name}: {error.strerror}") from error
