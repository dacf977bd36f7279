"""`jax-enzyme explain`: buffers, loops, library calls and tape of a kernel, or why it cannot be differentiated."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from jax_enzyme import ad
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.errors import DifferentiationError, SignatureError
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Jvp
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.instructions import CallBase, Instruction
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reader import parse as parse_ir
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.rules.effects import effect
from jax_enzyme.rules.table import standard
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature import parse as parse_signature
from jax_enzyme.transform.bind import bind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="a source file in any language that there is a front end for")
    parser.add_argument("signature", help='such as "n: i32, x: f64[n], out y: f64[n]"')
    parser.add_argument("--symbol", help="the function, where the source has several")
    parser.add_argument("--lang", help="the language, where the suffix does not say it")
    parser.add_argument("--flag", action="append", default=[], help="a compiler flag; may be repeated")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="dimensions and static integers")
    parser.add_argument("--ir", action="store_true", help="print the canonical IR too")


def main(arguments: argparse.Namespace) -> int:
    signature = parse_signature(arguments.signature)
    binding = _binding(signature, arguments.set)
    program = load(arguments.source, arguments.symbol, arguments.lang, arguments.flag)
    kernel = canonical(bind(parse_ir(program.ir), program.symbol, signature, binding))
    print("\n".join(report(program.symbol, kernel)))
    if arguments.ir:
        print("\n" + to_text(kernel.module))
    return 0


def report(name: str, kernel: ArrayFunction) -> Iterator[str]:
    """What there is to say about a canonical array function, line by line."""
    yield f"kernel {name}"
    yield "buffers"
    yield from (f"  {_buffer(b)}" for b in kernel.buffers)
    for function in kernel.module.functions.values():
        if not function.is_declaration:
            yield from _loops(function, kernel.module)
    yield "library calls"
    yield from _calls(kernel.module) or ["  none"]
    yield "derivatives"
    yield f"  forward: {_forward(kernel)}"
    yield f"  reverse: {_reverse(kernel)}"


def _binding(signature: Signature, settings: list[str]) -> Binding:
    given: dict[str, int] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if not value.lstrip("-").isdigit():
            raise SignatureError(f"`--set {setting}` is not of the form NAME=INTEGER")
        given[name] = int(value)
    dims = {name: value for name, value in given.items() if name in signature.shape_names}
    if missing := sorted(signature.shape_names - dims.keys()):
        raise SignatureError(
            f"no value for {', '.join(f'`{m}`' for m in missing)}",
            remedy="give every name in a shape one: --set " + " ".join(f"{m}=100" for m in missing),
        )
    if unknown := [name for name in given if name not in dims and name not in signature]:
        raise SignatureError(f"`{unknown[0]}` is no parameter and occurs in no shape", str(signature))
    return Binding.of(dims, {name: value for name, value in given.items() if name not in dims})


def _buffer(buffer: Buffer) -> str:
    return f"{buffer.io:7} {buffer.name}: {buffer.dtype}[{','.join(map(str, buffer.shape))}] ({buffer.nbytes} bytes)"


def _loops(function: Function, module: Module) -> Iterator[str]:
    cfg = Cfg(function)
    loops = Loops(cfg, Dominators(cfg))
    recurrences = Recurrences(function, cfg, loops, module)
    yield f"function {function.name}: {sum(1 for _ in function.instructions())} instructions, {len(loops.all)} loops"
    for loop in loops:
        first = next((i for i in loop.header.instructions if location(module, i)), None)
        place = location(module, first) if first is not None else None
        count = recurrences.trip_count(loop)
        yield f"{'  ' * loop.depth}loop at {place or loop.header.name}: back edge taken {count}"


def _calls(module: Module) -> list[str]:
    """One line per library function, with its rule and the first place of a call."""
    lines: dict[str, str] = {}
    for function in module.functions.values():
        for instruction in function.instructions():
            callee = instruction.callee if isinstance(instruction, CallBase) else None
            if isinstance(callee, Function) and callee.is_declaration and callee.name not in lines:
                place = location(module, instruction) or "no place known"
                lines[callee.name] = f"  {callee.name}: {_verdict(instruction, callee)} ({place})"
    return list(lines.values())


def _verdict(call: Instruction, callee: Function) -> str:
    rule = rule_of(call, standard())
    if rule is not None:
        return rule.refusal.cause if rule.refusal else rule.kind.value
    return "no rule" if effect(callee.name) is None else "memory"


def _forward(kernel: ArrayFunction) -> str:
    try:
        ad.derive(kernel, (Jvp(_wanted(kernel)),), Options())
    except DifferentiationError as error:
        return f"refused\n{_indented(error)}"
    return "one function"


def _reverse(kernel: ArrayFunction) -> str:
    step = Augmented(_wanted(kernel), tuple(b.is_floating and b.is_result for b in kernel.buffers))
    try:
        if not ad.splittable(kernel, step, Options()):
            return "one function that runs the forward sweep inside (no tape of fixed size)"
        buffers = ad.derive(kernel, (step,), Options()).buffers[len(kernel.buffers) :]
    except DifferentiationError as error:
        return f"refused\n{_indented(error)}"
    return f"two functions, tape {sum(b.nbytes for b in buffers)} bytes"


def _wanted(kernel: ArrayFunction) -> tuple[bool, ...]:
    return tuple(b.is_floating and b.is_input for b in kernel.buffers)


def _indented(error: DifferentiationError) -> str:
    return "\n".join(f"    {line}" for line in str(error).splitlines())
