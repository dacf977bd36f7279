"""Compilers side by side, which end where whoever waits for them is interrupted.

Ctrl-C is an exception in the main thread. A thread that waits for a compiler does not hear of it, and leaving the pool
would wait until the compilers are at their ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from pathlib import Path
from threading import Event
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_GIVEN_UP: ContextVar[Event | None] = ContextVar("_GIVEN_UP", default=None)
_LOOK_AFTER = 0.1
"""Seconds between two looks at whether anybody still waits."""


def side_by_side(task: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """What the task makes of each item, in threads, as many as there are processors.

    Raises:
        Whatever a task raises, or an interruption; processes that `run` started for the other tasks are ended.
    """
    wanted = list(items)
    if not wanted:
        return []
    given_up = Event()
    with ThreadPoolExecutor(min(len(wanted), os.cpu_count() or 1)) as pool:
        token = _GIVEN_UP.set(given_up)
        try:
            jobs = [pool.submit(copy_context().run, task, item) for item in wanted]
            return [job.result() for job in jobs]
        except BaseException:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            _GIVEN_UP.reset(token)


def run(
    words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, here: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a compiler without input and waits for it; the cache that zig keeps of its own goes into the folder.
    `environment` is what it is told besides, `here` where it runs.

    Returns:
        Its exit status and what it wrote; bytes that are no UTF-8 are replaced.

    Raises:
        OSError: the compiler cannot be started.
    """
    given_up = _GIVEN_UP.get()
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={
            **os.environ,
            **{f"ZIG_{name}_CACHE_DIR": str(folder / "zig") for name in ("GLOBAL", "LOCAL")},
            **(environment or {}),
        },
        cwd=here,
        process_group=0,  # a driver starts others, which are to end with it
    )
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                output, errors = process.communicate(timeout=None if given_up is None else _LOOK_AFTER)
                return subprocess.CompletedProcess(words, process.returncode, output, errors)
            if given_up is not None and given_up.is_set():
                raise KeyboardInterrupt
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
