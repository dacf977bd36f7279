"""Work that somebody waits for: the logger `jax_enzyme` says what it is and how long it took, what takes longer shows
itself in a terminal or a notebook, and Ctrl-C ends it.

    with working("differentiating `f`"):
        with working("optimising"):            # a part of it
            waiting_for(passes.run, module)    # outside of Python, where Ctrl-C does not arrive by itself
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar, Token
from importlib import import_module
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

from jax_enzyme.collector import collector_paused

LOG = logging.getLogger("jax_enzyme")

P = ParamSpec("P")
R = TypeVar("R")

_SHOWN_AFTER = 5.0
_WORTH_SAYING = 0.01
_LOOKS_EVERY = 0.25
_ASKS_AGAIN = 1.0
"""Seconds after which an interrupt that did not end the work is delivered again: Python drops one that arrives while a
callback of its garbage collector or of a weak reference runs."""


class working:
    """A context in which something is worked at. Contexts inside of it, in the same thread, are parts of the same."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        self._started = time.monotonic()
        self._outer = _current.get()
        self._inside = "" if self._outer is None else self._outer.stage
        LOG.debug("%s ...", self._what)
        if self._outer is None:
            self._watch = _Watch(self._what)
            self._token: Token[_Watch | None] = _current.set(self._watch)
            self._watch.start()
            self._paused = collector_paused()
            self._paused.__enter__()
        else:
            self._outer.stage = self._what

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._outer is None:
            self._paused.__exit__(None, None, None)
            self._watch.stop()
            _current.reset(self._token)
        else:
            self._outer.stage = self._inside
        if kind is None and self._outer is None and self._watch.was_interrupted:
            raise KeyboardInterrupt
        seconds = time.monotonic() - self._started
        if kind is None:
            LOG.log(logging.INFO if seconds >= _WORTH_SAYING else logging.DEBUG, "%s took %.3g s", self._what, seconds)
        else:
            LOG.info("%s was ended by %s after %.3g s", self._what, kind.__name__, seconds)


def waiting_for(run: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls something that works outside of Python, such as LLVM. In the main thread, which alone hears of Ctrl-C, and
    only between two steps of Python: there another thread does it, and finishes it unseen if it is not waited for."""
    if threading.current_thread() is not threading.main_thread() or sys.platform != "linux":
        return run(*args, **kwargs)  # elsewhere threads have too little stack for LLVM
    future: Future[R] = Future()
    threading.Thread(target=_work, args=(future, run, args, kwargs), name="jax_enzyme: LLVM").start()
    try:
        return future.result()
    finally:
        # An exception has this frame, which had it: a circle, which holds all modules of LLVM's in the frames above.
        del future


def _work(future: Future[Any], run: Callable[..., Any], args: Any, kwargs: Any) -> None:
    try:
        future.set_result(run(*args, **kwargs))
    except BaseException as error:
        future.set_exception(error)
    finally:
        del future


class _Watch:
    """Looks after the work of one thread. `stage` is what it is at."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self._started = time.monotonic()
        self._done = threading.Event()
        self._interrupted: float | None = None
        self._own_handler = False

    @property
    def was_interrupted(self) -> bool:
        return self._interrupted is not None

    def start(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._own_handler = True
            signal.signal(signal.SIGINT, self._interrupt)
        threading.Thread(target=self._look, name="jax_enzyme: progress", daemon=True).start()

    def stop(self) -> None:
        self._done.set()
        if self._own_handler and signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._interrupted = time.monotonic()
        signal.default_int_handler(number, frame)

    def _look(self) -> None:
        line: Any = None
        while not self._done.wait(_LOOKS_EVERY):
            now = time.monotonic()
            if self._interrupted is not None and now - self._interrupted > _ASKS_AGAIN:
                self._interrupted = now
                signal.raise_signal(signal.SIGINT)
            if now - self._started > _SHOWN_AFTER and self._interrupted is None:
                line = _progress(now - self._started) if line is None else line  # which has no truth value
                if line is not None:
                    line.set_description_str(f"jax_enzyme: {self.stage}")
        if line is not None:
            line.close()


_current: ContextVar[_Watch | None] = ContextVar("_current", default=None)


def _progress(seconds: float) -> Any:
    """A line that says since when work is going on, where there is somebody to read it, and tqdm to write it."""
    if not (sys.stderr.isatty() or _is_notebook()):
        return None
    try:
        line: Any = import_module("tqdm").tqdm(bar_format="{desc} ({elapsed})", leave=False, file=sys.stderr)
    except ImportError:
        return None
    line.start_t -= seconds
    return line


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
