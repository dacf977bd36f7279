"""The log, the line of progress and Ctrl-C while something is compiled."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest

import jax_enzyme as je
from jax_enzyme import working as module
from jax_enzyme.cache import DiskCache
from jax_enzyme.codegen import engine
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.working import waiting_for, working

jax.config.update("jax_enable_x64", True)
pytestmark = pytest.mark.usefixtures("python_handler")
SOURCE = "double {name}(double x) {{ return x * x; }}"


def made(name: str) -> je.Kernel:
    return je.kernel(SOURCE.format(name=name), name, "x: f64 -> f64", lang="c")


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_the_log_says_what_is_compiled_and_what_the_cache_had(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", str(tmp_path))
    with caplog.at_level(logging.DEBUG, "jax_enzyme"):
        assert jax.grad(made("logged"))(3.0) == 6
        made("logged")
    told = [r.getMessage() for r in caplog.records if r.name == "jax_enzyme"]
    assert [text for text in told if text.startswith("compiling kernel.c took")]
    assert [text for text in told if text.startswith("compiling the pullback of `logged` took")]
    assert "kernel.c is in the disk cache" in told


class Terminal:
    """Stands for the standard error of a terminal or of a file."""

    def __init__(self, is_terminal: bool) -> None:
        self.isatty = lambda: is_terminal


class Line:
    """Stands for tqdm."""

    def __init__(self, told: list[str]) -> None:
        self.told = told
        self.start_t = 0.0

    def set_description_str(self, text: str) -> None:
        self.told.append(text)

    def __bool__(self) -> bool:
        raise TypeError("as tqdm does without a total")

    def close(self) -> None:
        self.told.append("closed")


def wait_until(condition: Callable[[], object]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to be")


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_SHOWN_AFTER": 0.02, "_LOOKS_EVERY": 0.01, "_ASKS_AGAIN": 0.05}.items():
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("hurried")
def test_a_terminal_shows_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=lambda **_: Line(told)))
    monkeypatch.setattr(sys, "stderr", Terminal(True))
    with working("the whole"):
        wait_until(lambda: "jax_enzyme: the whole" in told)
        with working("a part"):
            wait_until(lambda: "jax_enzyme: a part" in told)
    wait_until(lambda: told[-1] == "closed")


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(("is_terminal", "tqdm"), [(False, SimpleNamespace()), (True, None)])
def test_nothing_is_shown_without_a_terminal_or_tqdm(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, tqdm: Any
) -> None:
    asked: list[float] = []
    progress = module._progress
    monkeypatch.setattr(module, "_progress", lambda seconds: asked.append(seconds) or progress(seconds))
    monkeypatch.setitem(sys.modules, "tqdm", tqdm)
    monkeypatch.setattr(sys, "stderr", Terminal(is_terminal))
    with working("the whole"):
        wait_until(lambda: len(asked) > 2)


def test_an_interrupt_ends_a_compile_and_the_next_call_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", str(tmp_path))
    square = made("interrupted")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(engine, "compiled", lambda *_: interrupt())
        square(3.0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert square(3.0) == 9
    assert jax.grad(square)(3.0) == 6


@pytest.mark.usefixtures("hurried")
def test_an_interrupt_that_python_drops_is_delivered_again() -> None:
    with pytest.raises(KeyboardInterrupt), working("a"):
        with suppress(KeyboardInterrupt):  # as in a callback of the garbage collector
            interrupt()
        wait_until(lambda: False)
    with pytest.raises(KeyboardInterrupt), working("b"), suppress(KeyboardInterrupt):
        interrupt()


# JAX's callback of the garbage collector may be what hears of it: then it is sent again.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function _xla_gc_callback")
def test_an_interrupt_arrives_while_something_outside_of_python_works() -> None:
    waiting, ends = threading.Event(), threading.Event()

    def work() -> bool:
        waiting.set()
        return ends.wait()

    def send() -> None:
        waiting.wait()
        os.kill(os.getpid(), signal.SIGINT)
        while not ends.wait(1.0):  # a callback of the garbage collector heard of it
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    with pytest.raises(KeyboardInterrupt):
        sender.start()
        try:
            waiting_for(work)
        finally:  # where the next one may come too
            ends.set()
            sender.join()
    assert waiting_for(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        waiting_for(lambda: 1 // 0)


def test_who_waits_for_an_interrupted_thread_makes_the_result() -> None:
    memo: Memo[int] = Memo(4)
    begun, waits = threading.Event(), threading.Event()

    def interrupted() -> int:
        begun.set()
        waits.wait()
        raise KeyboardInterrupt

    def first() -> None:
        with pytest.raises(KeyboardInterrupt):
            memo.get("key", interrupted)

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait()
    threading.Timer(0.05, waits.set).start()
    assert memo.get("key", lambda: 7) == 7
    thread.join()
    assert memo.get("key", lambda: 8) == 7


def test_an_interrupt_leaves_no_half_entry_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "some")

    def replace(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", replace)
        cache.put("key", b"data")
    assert list((tmp_path / "some").iterdir()) == []
    cache.put("key", b"data")
    assert cache.get("key") == b"data"
