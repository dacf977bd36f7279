"""How loops are shared out among threads, without XLA, under the thread sanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

_HERE = Path(__file__).parent / "sharing"
_CSRC = Path(__file__).parents[2] / "csrc"


def test_helpers_stay_for_the_loops_of_a_call_without_a_race(tmp_path: Path) -> None:
    program = tmp_path / "sharing"
    flags = ["-std=c++17", "-O1", "-g", "-fsanitize=thread", f"-I{_HERE}", f"-I{_CSRC}"]
    subprocess.run(["g++", *flags, _HERE / "sharing.cc", _CSRC / "thrown.cc", "-o", program, "-lpthread"], check=True)
    # The sanitizer needs memory where it expects it.
    ran = subprocess.run(["setarch", "--addr-no-randomize", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "wrong: 0\n"), ran.stderr
