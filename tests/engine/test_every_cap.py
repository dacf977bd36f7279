"""Every limit of what is looked at: beyond each, programs are right or refused, never wrong.

`BEYOND` has those on which an answer rests, each with a value that programs of `test_caps` are beyond. `ELSEWHERE` are
named with what holds them to that instead. One that is new has to be in either.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import jax_enzyme
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.errors import DifferentiationError
from tests.engine import test_caps as caps

PROGRAMS = {
    "control": (caps.CONTROL, ""),
    "pointers": (caps.POINTERS, ""),
    "copies": (caps.copied(4, caps.SQUARES), ""),
    "cycle": (caps.RIGHT["copies_around_a_cycle"], ""),
    "moved": (caps.RIGHT["moved_on_often"], ""),
    "functions": ("struct node m = {s6, 0, x[1]};\nfor (int i = 0; i < n; i++) t += m.f(&m, x[i]);", caps.PASSED_ON),
}
"""Right where nothing is cut off."""
MADE = {name: (body, "") for name, (body, cause) in caps.REFUSED.items() if cause is caps.MADE}
"""Refused always: what is cut off finds no number that was computed as an integer."""

BEYOND = {
    "analysis.alias:_DEPTH": (0, "pointers"),
    "analysis.congruence:MANY": (1, "pointers"),
    "analysis.congruence:_TOO_MANY": (2, "copies_around_a_cycle"),
    "analysis.counters:_DEEP": (0, "control"),
    "analysis.digits:_ELIMINATIONS": (0, "pointers"),
    "analysis.escaped:_MANY_PLACES": (0, "many_objects"),
    "analysis.evaluation:_MOST_BLOCKS": (0, "control"),
    "analysis.guards:MAX_CONDITIONS": (1, "control"),
    "analysis.implications:_LOOKED_THROUGH": (1, "control"),
    "analysis.memory:_MANY_JOINED": (1, "pointers"),
    "analysis.memory:_MANY_OBJECTS": (0, "many_objects"),
    "analysis.number_fields:_MANY_VISITS": (0, "control"),
    "analysis.offsets:MOST": (1, "moved_on_often"),
    "analysis.offsets:_MANY_STEPS": (0, "copies"),
    "analysis.phi_ranges:_LONGEST": (-1, "control"),
    "analysis.points_to_sets:MANY_FIELDS": (1, "behind_a_pointer"),
    "analysis.points_to_sets:MANY_STORED": (1, "pointers"),
    "analysis.ragged:_MOST_RUN": (0, "control"),
    "analysis.simulation:MAX_ITERATIONS": (2, "copies"),
    "analysis.folding:_MOST_NESTED": (0, "copies"),
    "analysis.usefulness:_MOST": (0, "functions"),
    "ad.emit.copies:_MOST": (0, "pointers"),
    "ad.plan.gates:_GATE_BLOCKS": (0, "control"),
    "ad.plan.recipes:_SAFE_DEPTH": (0, "control"),
    "ad.plan.recipes:_MANY_WRITES": (0, "copies"),
    "ad.plan.spent:_MANY_PAIRS": (0, "copies"),
    "ad.plan.taping:_MOST_COPIES": (0, "control"),
    "ad.plan.turned:_MANY_PAIRS": (0, "copies"),
    "ad.plan.spent:_MANY": (0, "copies"),
    "codegen.canonical:_ROUNDS": (0, "functions"),
    "codegen.unrolling:_ROUNDS": (0, "control"),
    "transform.devirtualise:MOST": (0, "functions"),
    "transform.struct_copies:_MOST_BYTES": (1, "pointers"),
}

_SHORTCUT = "a comparison is no shortcut then, and is warned of"
_UNKNOWN = "nothing is known of a value then"
_SPEED = "the code stays as it was"
_MODEL = "a model of what a launch moves; it says `at least` then"
_REFUSED = "refused then, by a program in test_caps or test_refusals"
ELSEWHERE = {
    "analysis.common_rows:_MOST": _SPEED,
    "analysis.congruence:_LARGE": "fewer bits of a product are told",
    "analysis.digits:_MOST_WAYS": _SPEED,
    "analysis.equality:_MANY": _SHORTCUT,
    "analysis.evaluation:_MOST_PARTS": _SHORTCUT,
    "analysis.extents:_MOST": "a place is wider",
    "analysis.only_iterations:_MOST": _SPEED,
    "analysis.orders:_DEPTH": _SHORTCUT,
    "analysis.polynomials:MAX_DEGREE": "an exception, which whoever asks has to catch; test_caps, by a nest of loops",
    "analysis.polynomials:MAX_TERMS": "the same",
    "analysis.ragged:_MOST_INSTRUCTIONS": _UNKNOWN,
    "analysis.recurrences:_MAX_ITERATION": "no loop goes on for longer",
    "analysis.residues:_MOST": _UNKNOWN,
    "analysis.rounding:_MOST_FRACTION": "what docs/limits.md says of sums that round",
    "analysis.shortcuts:_EFFORT": _SHORTCUT,
    "analysis.repetition:_MOST": _SPEED,
    "analysis.shortcuts:_EFFORT_EACH": _SHORTCUT,
    "analysis.shortcuts:_MOST_CASES": _SHORTCUT,
    "analysis.signs:_MOST_VALUES": "a number may be negative then",
    "analysis.single_values:_MOST_NUMBERS": "no warning of those further away, as docs/shortcuts.md says",
    "analysis.single_values:_MOST_ORDERED": "no warning of what is further away, as docs/shortcuts.md says",
    "analysis.single_values:_MOST_PARTS": "bits are warned of then: tests/engine/test_shortcuts.py",
    "analysis.simulation:_AT_ONCE": "one iteration after the other then",
    "analysis.simulation:_MOST_DRIVEN": "a number may be any of its type then",
    "analysis.turns:_MOST_PLACES": _UNKNOWN,
    "analysis.zeros:_MOST": "a pointer may be any then",
    "ad.checkpoint:_MANY": "a guess",
    "ad.best_again:_MOST_KEPT": _SPEED,
    "ad.device.groups:_LONGEST": _SPEED,
    "ad.device.groups:_MOST": _SPEED,
    "ad.device.rows:_LONGEST": "rows in several parts",
    "ad.device.ownership:_MOST_INDICES": "an addition is atomic then",
    "ad.device.axes:_MOST_NUMBERS": "an axis is not tabulated then, and its registers are terms of their own",
    "ad.device.shuffles:_MOST_MOVES": "tests/cuda/test_caps.py",
    "ad.device.sums:_MOST_REGISTERS": "tests/cuda/test_caps.py",
    "ad.device.warps:_DEPTH": "tests/analysis/test_caps.py",
    "ad.emit.early_loads:_MOST_LOADS": _SPEED,
    "ad.emit.nodes:_LIMIT": "where a limit is kept",
    "ad.plan.late_sums:_MOST_APART": _SPEED,
    "ad.plan.tape:_MANY_ROWS": _SPEED,
    "codegen.gpu.live_registers:_LIMIT": _SPEED,
    "codegen.gpu.ptxas:_LIMITS": "what devices have, by their manuals",
    "codegen.gpu.traffic:_MOST_SECTORS": _MODEL,
    "codegen.gpu.traffic:_STEPS": _MODEL,
    "codegen.entry:_MANY_ELEMENTS": "an error names no element then",
    "codegen.gpu.amd:MAX_SHARED": "the device's",
    "codegen.short_loops:_EFFORT": _SPEED,
    "codegen.short_nests:_MANY": _SPEED,
    "frontends.candidates:_MOST_PASTED": "a function whose name macros make of more words is not found",
    "frontends.missing_files:_MAX_FOLDERS": "a message names fewer",
    "frontends.missing_files:_MOST_BYTES": "a message names fewer",
    "frontends.runtime_library:LARGE": _SPEED,
    "transform.buffers:_MAX_ALIGN": "what allocators give",
    "transform.byte_swaps:_MOST_BYTES": _REFUSED,
    "transform.carried_loads:_DEEPEST": _SPEED,
    "transform.cuda.evening:_MOST": _SPEED,
    "transform.cuda.flags:_LONGEST": _SPEED,
    "transform.cuda.flags:_MOST_COPIED": _SPEED,
    "transform.cuda.levels:_MOST_INSTRUCTIONS": _SPEED,
    "transform.cuda.levels:_MOST_LEVELS": _SPEED,
    "transform.cuda.lockstep:_ROUNDS": "fewer races are seen: what is run is an example",
    "transform.cuda.lockstep:_STEPS": "the same",
    "transform.cuda.overlaps:_MOST_PAIRS": "more races are warned of",
    "transform.cuda.tile_places:_MOST_DIGITS": _SPEED,
    "transform.cuda.tiles:_LONGEST": _SPEED,
    "transform.cuda.whole_rows:_LONGEST": _SPEED,
    "transform.device.canonical:_SPLIT_UP_TO": _SPEED,
    "transform.device.smaller_blocks:_MOST": _SPEED,
    "transform.equal_phis:_MOST": _SPEED,
    "transform.lockstep:_LARGEST_COPY": _SPEED,
    "transform.openmp.reductions:_MOST_SCALARS": _SPEED,
    "transform.openmp.teams:_MOST": "how large a team may be",
    "transform.pointer_tables:_MOST": _SPEED,
    "transform.product_ranges:_MOST_BYTES": _SPEED,
    "transform.rotations:_MOST": _SPEED,
    "transform.sanitize.affine:_DEPTH": _SPEED,
    "transform.sanitize.apart:_MOST_GROUPS": _SPEED,
    "transform.sanitize.arithmetic:_MOST_BYTES": "what docs/crashes.md says of local arrays",
    "transform.sanitize.arithmetic:_MOST_ELEMENTS": "what docs/crashes.md says of local arrays",
    "transform.sanitize.endings:_MOST_BRIEF": _SPEED,
    "transform.sanitize.counting:MOST_STEP": _SPEED,
    "transform.sanitize.guarded:_MOST": _SPEED,
    "transform.sanitize.hoisting:_MOST_UNROLLED": _SPEED,
    "transform.sanitize.versions:_MOST_INSTRUCTIONS": _SPEED,
    "transform.shared_loops:_MOST_GRAINS": _SPEED,
    "transform.lower_calls:_LONGEST_PATH": "Linux takes none that is longer",
    "transform.source_types:_DEPTH": "nothing is said against a signature then",
}

FOLDERS = ("analysis", "ad", "transform", "frontends", "codegen", "rules")
LIMIT = re.compile(
    "MOST|MANY|MAX|DEPTH|DEEP|LONGEST|LOOKED|ROUNDS|EFFORT|NESTED|LARGE|LIMIT|ELIMINATIONS|STEPS|GATE|ONCE"
)
ROOT = Path(jax_enzyme.__file__).parent


def limits() -> Iterator[str]:
    """Constants of modules with such names that have numbers for values."""
    for path in (p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")):
        text = path.read_text()
        for node in ast.parse(text).body if LIMIT.search(text) else ():
            if not isinstance(node, ast.Assign) or any(isinstance(v, ast.Call) for v in ast.walk(node.value)):
                continue
            numbers = [v for v in ast.walk(node.value) if isinstance(v, ast.Constant) and type(v.value) in (int, float)]
            names = [v.id for t in node.targets for v in ast.walk(t) if isinstance(v, ast.Name)]
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield from (f"{module}:{name}" for name in names if numbers and LIMIT.search(name))


def test_every_limit_is_named() -> None:
    found = set(limits()) | {"transform.device.canonical:_SPLIT_UP_TO"}
    assert found == {*BEYOND, *ELSEWHERE}


@pytest.mark.parametrize("limit", BEYOND)
def test_beyond(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right or refused; what is refused without the limit is refused."""
    value, name = BEYOND[limit]
    module, constant = limit.split(":")
    home = importlib.import_module(f"jax_enzyme.{module}")
    before = getattr(home, constant)
    users = [m for m in sys.modules.values() if getattr(m, "__name__", "").startswith("jax_enzyme.")]
    for user in users:
        if user is home or (not constant.startswith("_") and vars(user).get(constant) == before):
            monkeypatch.setattr(user, constant, value)
    for memo in [name for name, known in vars(derived).items() if isinstance(known, Memo)]:
        monkeypatch.setattr(derived, memo, Memo(8))
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", "")
    if name in MADE:
        body, cause = caps.REFUSED[name]
        caps.is_refused(caps.program(body), cause)
        return
    with suppress(DifferentiationError):
        caps.is_right(caps.program(*PROGRAMS[name]))
