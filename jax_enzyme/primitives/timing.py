"""How long calls take, side by side: what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

Clock = Callable[[], float]

_WARM = 0.1
"""Seconds of calls before anything is timed: processors clock up, and wide registers are switched on."""
_SAMPLE = 1e-3
"""Seconds that one sample takes at least: several calls, where one is shorter."""
_BUDGET = 2.0
"""Seconds of samples, unless the fewest rounds take longer."""
_TRIAL, _FEWEST, _MOST = 3, 5, 41
_HOPELESS = 2.0
"""What takes so many times as long as the fastest is not called again after the trial."""
_GAIN = 0.03
"""By which part of its time something has to be faster: less is noise."""


@dataclass(frozen=True)
class Taken:
    """The seconds that a call took: the median of samples, and the least of them, which other work on the machine
    hardly changes."""

    median: float
    least: float

    def is_faster_than(self, other: Taken) -> bool:
        """Whether both say so, by more than noise."""
        return self.median < (1 - _GAIN) * other.median and self.least < (1 - _GAIN) * other.least


def taken(calls: Mapping[str, Callable[[], object]], clock: Clock = time.perf_counter) -> dict[str, Taken]:
    """What one call of each takes, sampled in turns. All have been called before, so that nothing is compiled here.
    The first is what others are compared with, and is sampled to the end however slow it is."""
    started = clock()
    while True:
        for call in calls.values():
            call()
        if clock() - started >= _WARM:
            break
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_TRIAL):
        for name, call in calls.items():
            samples[name].append(_seconds(call, 1, clock))
    least = {name: min(found) for name, found in samples.items()}
    fastest = min(least.values())
    repeats = max(1, ceil(_SAMPLE / fastest)) if fastest > 0 else 1
    running = [name for n, name in enumerate(calls) if not n or least[name] <= _HOPELESS * fastest]
    round_takes = repeats * sum(least[name] for name in running)
    rounds = min(_MOST, max(_FEWEST, int(_BUDGET / round_takes) if round_takes > 0 else _FEWEST))
    samples |= {name: [] for name in running}
    for number in range(rounds):
        start = number % len(running)
        for name in (*running[start:], *running[:start]):
            samples[name].append(_seconds(calls[name], repeats, clock))
    return {name: Taken(float(np.median(found)), min(found)) for name, found in samples.items()}


def _seconds(call: Callable[[], object], repeats: int, clock: Clock) -> float:
    started = clock()
    for _ in range(repeats):
        call()
    return (clock() - started) / repeats
