"""Prints the processor seconds that the first gradient of a kernel takes, through `jax.grad`, and the share of stages.

    python -m benchmarks.compile_time [--only NAME] [--large] [--limit SECONDS]

Every program is compiled in a process of its own, with an empty cache. Programs that are generated come in sizes of
which each is twice the one before: the column `growth` is the time of a size over that of the one before. The package
has its byte code, as where it is installed.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table

from benchmarks.compile_problems import Problem, problems

STAGES = ("front end", "prepare", "canonical", "analyses", "plan", "emission", "check", "code generation", "JAX")
_WHOLE = (
    ("frontends/", "front end"),
    ("transform/prepare.py", "prepare"),
    ("transform/bind.py", "prepare"),
    ("codegen/programs.py", "prepare"),
    ("codegen/canonical.py", "canonical"),
    ("codegen/object.py", "code generation"),
    ("ad/check/", "check"),
)
"""What counts as one stage with all that it calls."""
_PARTS = (
    ("analysis/", "analyses"),
    ("ad/facts/", "analyses"),
    ("ad/plan/", "plan"),
    ("ad/reversal.py", "plan"),
    ("ad/", "emission"),
    ("codegen/", "code generation"),
)
"""What counts where it is the innermost of these."""
_PACKAGE = f"{os.sep}jax_enzyme{os.sep}"
_SOURCES = Path(__file__).parent.parent / "jax_enzyme"
_INTERVAL = 0.005


class Sampler:
    """Takes a look at the stack after every few milliseconds of processor time, and adds the time to a stage."""

    def __init__(self) -> None:
        self.stages: Counter[str] = Counter()
        self.llvm = 0.0
        self._last = time.process_time()
        self._children = _of_children()

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self, number: int, frame: FrameType | None) -> None:
        now = time.process_time()
        spent, self._last = now - self._last, now
        files: list[str] = []
        in_llvm = False
        while frame is not None:
            name = frame.f_code.co_filename
            # LLVM runs in a thread of its own while this one waits.
            in_llvm |= f"{os.sep}llvmlite{os.sep}" in name or frame.f_code.co_name == "waiting_for"
            if _PACKAGE in name:
                files.append(name.rpartition(_PACKAGE)[2])
            frame = frame.f_back
        found = stage(files)
        # What a process took is known as soon as it has ended, before its caller goes on.
        children = _of_children()
        outside, self._children = children - self._children, children
        self.stages[found] += spent + outside
        self.llvm += (spent if in_llvm else 0.0) + (outside if found != "front end" else 0.0)


def _of_children() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def stage(files: list[str]) -> str:
    """The stage of a stack, given as files of the package, innermost first."""
    for prefix, name in _WHOLE:
        if any(file.startswith(prefix) for file in files):
            return name
    for file in files:
        for prefix, name in _PARTS:
            if file.startswith(prefix):
                return name
    return "JAX"


def measure(problem: Problem) -> None:
    """Compiles one program in this process and prints what it took, as JSON."""
    import jax

    import jax_enzyme as je

    jax.config.update("jax_enable_x64", True)
    sampler = Sampler()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    sampler.start()
    kernel = je.kernel(problem.source, "f", problem.signature, lang=problem.lang, flags=problem.flags)
    function = kernel if problem.value_alone else jax.grad(kernel, argnums=problem.argnums)
    jax.block_until_ready(function(*problem.arguments))
    sampler.stop()
    usage, outside = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        "seconds": usage.ru_utime - before + outside.ru_utime,
        "megabytes": max(usage.ru_maxrss, outside.ru_maxrss) / 1024,
        "llvm": sampler.llvm,
        "stages": dict(sampler.stages),
    }
    print(json.dumps(found))


def _measured(problem: Problem, limit: int) -> dict[str, float | dict[str, float]] | str:
    """The same in a process of its own, or what became of it."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "JAX_ENZYME_CACHE_DIR": cache}
        command = [sys.executable, "-m", "benchmarks.compile_time", "--measure", problem.name]
        ran = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
        )
    if ran.returncode == 0:
        return json.loads(ran.stdout.splitlines()[-1])
    if ran.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"over {limit} s"
    return (ran.stderr.strip().splitlines() or [f"status {ran.returncode}"])[-1][:60]


def _print(console: Console, chosen: list[Problem], limit: int) -> None:
    shown = Table(title="First gradient, cold: processor seconds, and the share of each stage in %")
    shown.add_column("program")
    for head in ("s", "MB", "growth", "Python %", *STAGES):
        shown.add_column(head, justify="right")
    before: dict[str, float] = {}
    for problem in chosen:
        if problem.missing is not None:
            shown.add_row(problem.name, f"LEFT OUT: {problem.missing}")
            continue
        found = _measured(problem, limit)
        if isinstance(found, str):
            shown.add_row(problem.name, found)
            continue
        seconds, stages = found["seconds"], found["stages"]
        assert isinstance(seconds, float) and isinstance(stages, dict)
        total = max(sum(stages.values()), 1e-9)
        growth = f"{seconds / before[problem.kind]:.2f}" if problem.kind in before else ""
        before[problem.kind] = seconds
        python = 100 * (1 - (found["llvm"] + stages.get("front end", 0.0)) / total)
        shares = [f"{100 * stages.get(s, 0.0) / total:.0f}" for s in STAGES]
        shown.add_row(problem.name, f"{seconds:.1f}", f"{found['megabytes']:.0f}", growth, f"{python:.0f}", *shares)
    console.print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_time", description=__doc__)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--large", action="store_true", help="generated programs of up to 10,000 statements")
    parser.add_argument("--limit", type=int, default=120, help="processor seconds for each program")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(next(p for p in problems(large=True) if p.name == options.measure))
        return
    compileall.compile_dir(_SOURCES, quiet=1)
    chosen = [p for p in problems(options.large) if options.only in p.name]
    _print(Console(width=None if os.isatty(1) else 180), chosen, options.limit)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main()
