"""Settings of every test run."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator

import jax
import pytest
from hypothesis import Phase, settings

from tests.support.xla import compile_without_optimising

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", os.environ.get("JAX_PLATFORMS", "cpu"))
jax.config.update("jax_num_cpu_devices", 8)  # here, as libraries under test make a client when they are imported

# Each run takes the same short sequence of programs, and shows a failing one as it is; `make fuzz` asks for the long
# profile by --hypothesis-profile: other programs every time, and the failing one made small.
settings.register_profile(
    "short", max_examples=10, deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("long", max_examples=2000, deadline=None)
settings.load_profile("short")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seconds", type=float, help="start no test after so many seconds; those left out are told")
    parser.addoption("--one-row-in", type=int, default=1, help="of each test one in so many rows, the first of all")


def pytest_configure(config: pytest.Config) -> None:
    # On the newest JAX, where every sixth row runs, programs are optimised as users have it; so are those of processes
    # that tests start.
    if config.getoption("--one-row-in") == 1:
        compile_without_optimising()


_BEGAN = time.monotonic()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    every = config.getoption("--one-row-in")
    assert isinstance(every, int)
    rows = Counter[str]()
    kept: list[pytest.Item] = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        if rows[name] % every == 0:
            kept.append(item)
        rows[name] += 1
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[*set(items) - set(kept)])
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    limit = item.config.getoption("--seconds")
    if limit is not None and time.monotonic() - _BEGAN > limit:
        pytest.skip("left out: no time was left")
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left = [r for r in terminalreporter.stats.get("skipped", ()) if "no time was left" in str(r.longrepr)]
    if left:
        terminalreporter.write_line(f"NO TIME FOR {len(left)} TESTS: they were not run", red=True)


@pytest.fixture
def python_handler() -> Iterator[None]:
    """Python's handler of Ctrl-C: processes in the background, and those that run a part of the tests, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
