"""Bitcode and object files from outside, read by LLVM in a process of its own: some that are damaged make it end the
process in which it reads them, and no caller is to end with it.

The child imports llvmlite alone, which takes a tenth of a second, and hands back what it has read.
"""

from __future__ import annotations

import subprocess
import sys

_AS_TEXT = """
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
_REFUSED = 3
_CHILD = """
import sys
sys.path[:] = {path!r}
from llvmlite import binding as llvm
data = sys.stdin.buffer.read()
try:
{steps}
except RuntimeError as error:
    sys.stderr.write(str(error))
    sys.exit({refused})
sys.stdout.buffer.write(found)
"""


def text_of_bitcode(contents: bytes) -> str:
    """Bitcode of any version that LLVM upgrades as text of this one, verified. RuntimeError where it is none."""
    return _read(_AS_TEXT, contents).decode()


def embedded_bitcode(contents: bytes) -> bytes | None:
    """The bitcode in an object file that was compiled with -fembed-bitcode or -ffat-lto-objects, None where there is
    none. RuntimeError where this is no object file."""
    return _read(_EMBEDDED, contents) or None


def _read(steps: str, contents: bytes) -> bytes:
    indented = "".join(f"    {line}\n" for line in steps.strip().splitlines())
    script = _CHILD.format(path=sys.path, steps=indented, refused=_REFUSED)
    child = subprocess.run([sys.executable, "-c", script], input=contents, capture_output=True, check=False)
    if child.returncode == 0:
        return child.stdout
    said = child.stderr.decode(errors="replace").strip()
    if child.returncode == _REFUSED:
        raise RuntimeError(said)
    last = said.splitlines()[-1] if said else f"its status is {child.returncode}"
    raise RuntimeError(f"it is damaged, and LLVM ends the process that reads it ({last})")
