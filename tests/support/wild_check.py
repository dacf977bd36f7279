"""Checks one wild program: the reference, forward mode, reverse mode in one and in two sweeps, finite differences.

`r` is known when the derivative is made, or at run time alone, as the seed has it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from jax_enzyme.errors import DifferentiationError
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.wild_programs import SIGNATURE, WildProgram

TOLERANCE = {True: 2e-4, False: 1e-9}


def case_of(folder: Path, program: WildProgram, seed: int) -> Case:
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
    return Case("program", SIGNATURE, lambda _: arguments, file=str(path), flags=program.flags, step=2e-3)


def check(program: WildProgram, seed: int) -> str:
    """What was compared. Raises AssertionError where two ways differ."""
    with tempfile.TemporaryDirectory() as folder:
        case = case_of(Path(folder), program, seed)
        try:
            subject = through_engine.subject(case)
            if not program.single:
                three_way.check_primal(subject, case)
            agree(subject, case, program.single)
            if through_engine.Specialised.of(case).splits(through_engine.Specialised.of(case).vjp):
                agree(through_engine.subject(case, split=True), case, program.single)
        except DifferentiationError as error:
            return f"refused: {str(error).splitlines()[0].split(':')[-1].strip()}"
        if program.single:
            return "modes, single precision"
        try:
            known = three_way.truth(case)
        except three_way.RoughError:
            return "modes"
        three_way.check_forward(subject, known)
        return "modes and differences"


def agree(subject: three_way.Subject, case: Case, single: bool) -> None:
    """<w, J v> of forward and of reverse mode."""
    model = three_way.reference(case.path, case.entry, case.signature, case.flags)
    tangents, cotangents = three_way.directions(case, model, model(case.arguments), 1)
    dots, bars = subject.jvp(case.arguments, tangents), subject.vjp(case.arguments, cotangents)
    terms = [w * dots[n] for n, w in cotangents.items()], [v * bars[n] for n, v in tangents.items()]
    forward, reverse = (sum(float(np.sum(t)) for t in side) for side in terms)
    size = max(sum(float(np.sum(np.abs(t))) for t in side) for side in terms)
    assert np.isfinite(forward), "the program is not finite"
    assert abs(reverse - forward) <= TOLERANCE[single] * size, (
        f"forward {forward!r}, reverse {reverse!r}, size {size:.3g}"
    )
