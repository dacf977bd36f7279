"""Checks one generated program: the reference, forward mode, reverse mode in one and in two sweeps, finite differences;
as the seed has it, also reverse mode with loops checkpointed, all second derivatives, or those of checkpointed loops.

In a wild program `r` is known when the derivative is made, or at run time alone, as the seed has it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from jax_enzyme.errors import DifferentiationError
from jax_enzyme.options import Options
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.ir_programs import EXTENT, IrProgram
from tests.support.ir_programs import SIGNATURE as IR_SIGNATURE
from tests.support.levels import at_level
from tests.support.second import ORDERS, Second
from tests.support.wild_programs import SIGNATURE, WildProgram

MORE = (None, "sqrt", "second", "log", "second", 2, "second of sqrt", "third")
TOLERANCE = {True: 2e-4, False: 1e-9}


def wild_case(folder: Path, program: WildProgram, seed: int) -> Case:
    """The program as a case with random inputs."""
    path = folder / "program.c"
    path.write_text(program.source)
    random = np.random.default_rng(seed)
    r = int(random.integers(0, program.m + 1))
    arguments = {
        "r": r if seed % 2 else np.int32(r),
        "a": float(random.uniform(0.2, 1)),
        "x": random.normal(size=program.n),
        "place": random.integers(0, program.n, program.m, dtype=np.int32),
        "y": random.normal(size=program.n),
        "z": random.normal(size=program.m),
    }
    row = Case("program", SIGNATURE, lambda _: arguments, file=str(path), step=2e-3)
    return at_level(row, program.level, folder) if program.level else row


def ir_case(folder: Path, program: IrProgram, seed: int) -> Case:
    """The same for a program in IR."""
    path = folder / "program.ll"
    path.write_text(program.source)
    random = np.random.default_rng(seed)
    arguments = {
        "a": float(random.uniform(0.2, 1)),
        "x": random.normal(size=EXTENT),
        "y": random.normal(size=EXTENT),
    }
    return Case("program", IR_SIGNATURE, lambda _: arguments, file=str(path), step=2e-3)


def check(program: WildProgram | IrProgram, seed: int) -> str:
    """What was compared. Raises AssertionError where two ways differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if isinstance(program, IrProgram):
            return check_case(ir_case(folder, program, seed), False, seed)
        return check_case(wild_case(folder, program, seed), program.single, seed)


def check_case(case: Case, single: bool, seed: int) -> str:
    model = three_way.reference(case.path, case.entry, case.signature, case.flags)
    if not all(np.all(np.isfinite(v)) for v in model(case.arguments).values()):
        return "not finite"
    try:
        subject = through_engine.subject(case)
        if not single:
            three_way.check_primal(subject, case)
        agree(subject, case, single)
        kernel = through_engine.Specialised.of(case)
        if kernel.splits(kernel.vjp):
            agree(through_engine.subject(case, split=True), case, single)
        more(case, single, seed)
    except DifferentiationError as error:
        return f"refused: {error.cause}"
    if single:
        return "modes, single precision"
    try:
        known = three_way.truth(case)
    except three_way.RoughError:
        return "modes"
    three_way.check_forward(subject, known)
    return "modes and differences"


def more(case: Case, single: bool, seed: int) -> None:
    """The checks that not every program gets."""
    chosen = MORE[seed // 2 % len(MORE)]
    if chosen in ("second", "second of sqrt", "third") and single:
        return
    match chosen:
        case None:
            pass
        case "second":
            every_order(case)
        case "third":
            third(case)
        case _:
            try:
                if chosen == "second of sqrt":
                    second_of_checkpoints(case)
                else:
                    agree(through_engine.subject(case, options=Options(checkpoint=chosen)), case, single)
            except DifferentiationError as error:
                if "checkpoint" not in error.cause:
                    raise


def every_order(case: Case) -> None:
    """Second derivatives, which are smooth only away from kinks: there they may be anything, but the same."""
    second = Second(through_engine.Specialised.of(case), case)
    products = {order: second.product(order) for order in ORDERS}
    size = max(map(abs, products.values()))
    assert max(products.values()) - min(products.values()) <= 1e-7 * (size + 1), products


def second_of_checkpoints(case: Case) -> None:
    """Forward over reverse with loops cut into segments, and without."""
    options = (Options(checkpoint="sqrt"), Options(checkpoint=False))
    one, other = (Second(through_engine.Specialised.of(case, o), case).product("fwd-over-rev") for o in options)
    assert abs(one - other) <= 1e-7 * (abs(other) + 1), (one, other)


def third(case: Case) -> None:
    """Third derivatives along one direction: forward mode twice over forward mode, and over reverse mode."""
    second = Second(through_engine.Specialised.of(case), case)
    one, other = (second.third(first) for first in ("fwd", "rev"))
    assert abs(one - other) <= 1e-6 * (abs(other) + 1), (one, other)


def agree(subject: three_way.Subject, case: Case, single: bool) -> None:
    """<w, J v> of forward and of reverse mode."""
    model = three_way.reference(case.path, case.entry, case.signature, case.flags)
    tangents, cotangents = three_way.directions(case, model, model(case.arguments), 1)
    dots, bars = subject.jvp(case.arguments, tangents), subject.vjp(case.arguments, cotangents)
    terms = [w * dots[n] for n, w in cotangents.items()], [v * bars[n] for n, v in tangents.items()]
    forward, reverse = (sum(float(np.sum(t)) for t in side) for side in terms)
    size = max(sum(float(np.sum(np.abs(t))) for t in side) for side in terms)
    away = abs(reverse - forward)
    assert away <= TOLERANCE[single] * size, f"forward {forward!r}, reverse {reverse!r}, size {size:.3g}"
