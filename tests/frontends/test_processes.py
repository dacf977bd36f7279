"""Compilers side by side: what they give, and that they end where nobody waits for them any more."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from jax_enzyme.frontends.processes import run, side_by_side

# A driver that starts another program, as zig does, which says who it is and would go on for a long time.
_DRIVER = (
    "import subprocess, sys; subprocess.run([sys.executable, '-c', "
    "'import os, sys, time; open(sys.argv[1], \"w\").write(str(os.getpid())); time.sleep(600)', sys.argv[1]])"
)


def test_results_come_in_the_order_of_the_items(tmp_path: Path) -> None:
    def said(word: str) -> str:
        return run((sys.executable, "-c", f"print({word!r})"), tmp_path).stdout.strip()

    assert side_by_side(said, ("a", "b", "c")) == ["a", "b", "c"]


def test_an_exception_ends_the_programs_that_the_others_wait_for(tmp_path: Path) -> None:
    started = tmp_path / "started"

    def task(waits: bool) -> None:
        if waits:
            run((sys.executable, "-c", _DRIVER, str(started)), tmp_path)
        while not (started.exists() and started.read_text()):
            time.sleep(0.01)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        side_by_side(task, (False, True))
    process = int(started.read_text())
    until = time.monotonic() + 10  # one that is killed closes its pipes before it has ended
    while _runs(process) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _runs(process)


def _runs(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"
