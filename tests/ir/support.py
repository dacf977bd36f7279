"""What the tests of the IR share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

HERE = Path(__file__).parent
FIXTURES = sorted((HERE / "fixtures").glob("*.ll"))
SOURCES = sorted((HERE / "sources").iterdir())


def printed_by_llvm(text: str) -> str:
    """How LLVM prints a text, but for the comment that names the module."""
    lines = str(llvm.parse_assembly(text, llvm.create_context())).splitlines()
    return "\n".join(line for line in lines if not line.startswith("; ModuleID"))


def compiled(source: Path, folder: Path, *flags: str) -> str:
    """The IR that clang makes of a C or C++ file."""
    language = ["c++", "-std=c++17"] if source.suffix == ".cpp" else ["cc"]
    clang = [sys.executable, "-m", "ziglang", *language, *flags, "-S", "-emit-llvm"]
    return _output(clang, source, folder)


def compiled_elsewhere(source: Path, folder: Path, level: int) -> str:
    """The IR that flang or rustc makes of a file; skips the test where the compiler is missing or of another LLVM."""
    fortran = source.suffix == ".f90"
    names = ("flang-22", "flang-new-22", "flang") if fortran else ("rustc",)
    tool = next((found for name in names if (found := shutil.which(name))), None)
    if tool is None:
        pytest.skip(f"no {names[-1]} here")
    if fortran:
        command = [tool, f"-O{level}", "-g", "-S", "-emit-llvm"]
    else:
        command = [tool, "-C", f"opt-level={level}", "-g", "--crate-type=lib", "--emit=llvm-ir"]
    text = _output(command, source, folder)
    try:
        llvm.parse_assembly(text, llvm.create_context())
    except RuntimeError:
        pytest.skip(f"llvmlite does not read what {tool} writes")
    return text


def _output(command: list[str], source: Path, folder: Path) -> str:
    out = folder / f"{source.stem}.ll"
    subprocess.run([*command, str(source), "-o", str(out)], check=True, capture_output=True, cwd=folder)
    return out.read_text()
