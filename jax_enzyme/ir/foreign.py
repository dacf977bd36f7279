"""Bitcode and object files from outside, read by LLVM in a process of its own: some that are damaged make it end the
process in which it reads them, or read for ever, and no caller is to end with it.

The child imports llvmlite alone, which takes a tenth of a second, and hands back what it has read of one after the
other. Where it ends, another one goes on behind what it was at.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

AS_TEXT = """
parsed = llvm.parse_bitcode(data, llvm.create_context())
parsed.verify()
found = str(parsed).encode()
"""
_EMBEDDED = """
read = llvm.ObjectFileRef.from_data(data)
if not read:
    raise RuntimeError("LLVM does not know its format")  # asked for sections, it would end the process
held = (s.data() for s in read.sections() if s.name() in (b".llvmbc", b".llvm.lto", b"__bitcode"))
found = next((d for d in held if d.startswith(b"BC")), b"")
"""
_READ, _REFUSED = b"r", b"e"
_LENGTH = 8
_CHILD = """
import sys
sys.path[:] = {path!r}
from llvmlite import binding as llvm
while size := sys.stdin.buffer.read({length}):
    data = sys.stdin.buffer.read(int.from_bytes(size, "little"))
    kind = {read!r}
    try:
{steps}
    except RuntimeError as error:
        kind, found = {refused!r}, str(error).encode()
    sys.stdout.buffer.write(kind + len(found).to_bytes({length}, "little") + found)
    sys.stdout.buffer.flush()
"""
_PATIENCE = 120
"""Seconds for what is short."""
_SPEED = 100_000
"""Bytes for which there is a second more: a fiftieth of what LLVM reads in one."""


def texts_of_bitcode(contents: Sequence[bytes]) -> list[str | RuntimeError]:
    """Bitcode of any version that LLVM upgrades as text of this one, verified; an error for what is none."""
    return [read if isinstance(read, RuntimeError) else read.decode() for read in _read(AS_TEXT, contents)]


def embedded_bitcode(contents: Sequence[bytes]) -> list[bytes | RuntimeError]:
    """The bitcode in object files that were compiled with -fembed-bitcode or -ffat-lto-objects, empty where there is
    none; an error for what is no object file."""
    return _read(_EMBEDDED, contents)


def _read(steps: str, contents: Sequence[bytes]) -> list[bytes | RuntimeError]:
    indented = "".join(f"        {line}\n" for line in steps.strip().splitlines())
    script = _CHILD.format(path=sys.path, steps=indented, length=_LENGTH, read=_READ, refused=_REFUSED)
    found: list[bytes | RuntimeError] = []
    while len(found) < len(contents):
        rest = contents[len(found) :]
        given = b"".join(len(data).to_bytes(_LENGTH, "little") + data for data in rest)
        patience = _PATIENCE + len(given) // _SPEED
        try:
            child = subprocess.run(
                [sys.executable, "-c", script], input=given, capture_output=True, check=False, timeout=patience
            )
            answers, said = child.stdout, child.stderr.decode(errors="replace").strip()
            last = said.splitlines()[-1] if said else f"its status is {child.returncode}"
            cause = f"it is damaged, and LLVM ends the process that reads it ({last})"
        except subprocess.TimeoutExpired as late:
            answers, cause = late.stdout or b"", f"LLVM comes to no end with it in {patience} s: it may be damaged"
        found += _answers(answers)
        if len(found) < len(contents):
            found.append(RuntimeError(cause))
    return found


def _answers(answers: bytes) -> list[bytes | RuntimeError]:
    """What a child has said, less what it was saying in the end."""
    found: list[bytes | RuntimeError] = []
    at = 0
    while at + 1 + _LENGTH <= len(answers):
        start = at + 1 + _LENGTH
        end = start + int.from_bytes(answers[at + 1 : start], "little")
        if end > len(answers):
            break
        said = answers[start:end]
        found.append(said if answers[at : at + 1] == _READ else RuntimeError(said.decode(errors="replace")))
        at = end
    return found
