"""Device functions on the CPU: a derived kernel, one thread at a time, as the function of its whole grid."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jax_enzyme.ad import device
from jax_enzyme.codegen.gpu.primal import device_primal
from jax_enzyme.codegen.host import host, target_machine
from jax_enzyme.codegen.loading import Built
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Jvp, Pullback, Step, Vjp
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Argument, BasicBlock
from jax_enzyme.options import Options
from jax_enzyme.transform.cuda.lower import lower
from tests.cuda.device_faults import MISSING, watch
from tests.support.engine import Native, Sweeps, pair
from tests.support.native import call
from tests.support.unoptimised import unoptimised

_KERNEL = "je.kernel"


def derived(kernel: Native, *steps: Step, options: Options | None = None) -> DeviceFunction:
    """The derivative of a kernel as a device function, before code generation."""
    function = device_primal(kernel.program, kernel.signature, kernel.binding)
    for step in steps:
        function = device.derive(device.canonical(function), step, options or Options())
    return function


def on_cpu(function: DeviceFunction) -> Built:
    """All threads of a device function as code of this machine, which fails where a device would hang
    (`device_faults`)."""
    module = clone(function.module)
    (symbol,) = function.symbols
    target = module.functions[symbol]
    block = BasicBlock(name="entry")
    at = Builder(block)
    watch(module, function, at)
    arguments = [Argument(T.PTR, a.attributes, i, name=f"a{i}") for i, a in enumerate(target.arguments)]
    at.call(target, arguments)
    at.ret()
    type_ = T.FunctionType(T.VOID, tuple(a.type for a in arguments))
    module.functions[_KERNEL] = Function(T.PTR, type_, list(arguments), [block], ("ptx_kernel",), name=_KERNEL)
    lowered = lower(module, _KERNEL, function.shape, {}, host().triple, str(target_machine().target_data))
    kernel = lowered.functions[_KERNEL]
    block = BasicBlock(name="entry")
    at = Builder(block)
    given = [Argument(T.PTR, ("noalias",), i, name=f"b{i}") for i in range(len(arguments))]
    missing = lowered.globals.get(MISSING)  # where threads ask for nobody, it is gone
    if missing is not None:
        at.store(const_int(T.I32, 0), missing)
    at.call(kernel, given)
    at.ret(const_int(T.I64, 0) if missing is None else at.cast("zext", at.load(T.I32, missing), T.I64))
    type_ = T.FunctionType(T.I64, kernel.function_type.parameters)
    lowered.functions["je.grid"] = Function(T.PTR, type_, list(given), [block], name="je.grid")
    return unoptimised(ArrayFunction(lowered, "je.grid", function.buffers))


def run(function: DeviceFunction, arrays: list) -> dict[tuple[str, int], np.ndarray]:
    """What all threads do; before that, where buffers grow, the count that says how large they have to be."""
    if function.count is None:
        return results(on_cpu(function), arrays)
    counter, room = function.count.function, function.count.room
    buffers = tuple(
        replace(b, io="inout" if i == room else "scratch" if b.io == "out" else b.io, discard=b.io == "inout")
        for i, b in enumerate(counter.buffers)
    )
    before = sum(b.is_input for b in counter.buffers[:room])
    zeroed = [*arrays[:before], np.zeros(1, np.int64), *arrays[before:]]
    (rows,) = call(on_cpu(replace(counter, buffers=buffers)), zeroed)
    grown = [replace(b, shape=(int(rows[0]), *b.shape[1:])) if b.grows else b for b in function.buffers]
    grown[room] = replace(grown[room], io="in", zero=False)
    return results(on_cpu(replace(function, buffers=tuple(grown))), [*arrays[:before], rows, *arrays[before:]])


def results(built: Built, arrays: list) -> dict[tuple[str, int], np.ndarray]:
    """The results by role and number of the buffer."""
    found = [b for b in built.buffers if b.is_result]
    return {(b.role, b.of): r for b, r in zip(found, call(built, arrays), strict=True)}


@dataclass(frozen=True)
class Numbers:
    """<w, J v> four ways. `split` is `combined`, or the other way round, where a derivative does not split, as its tape
    has no fixed size, or only one of the two was asked for."""

    differences: float
    forward: float
    combined: float
    split: float


def three_way(kernel: Native, given: list, step: float = 1e-6, sweeps: Sweeps = "both") -> Numbers:
    """All floating inputs move, all floating outputs count. `sweeps`: as in `tests.support.engine`."""
    rng = np.random.default_rng(11)
    base = kernel.buffers
    wanted = tuple(b.is_input and b.is_floating for b in base)
    seeded = tuple(b.is_result and b.is_floating for b in base)
    floating = [b.is_floating for b in base if b.is_input]
    tangents = [np.asarray(rng.normal(size=b.shape)) for b, w in zip(base, wanted, strict=True) if w]
    cotangents = [rng.normal(size=b.shape) for b, s in zip(base, seeded, strict=True) if s]
    weights = dict(zip([i for i, s in enumerate(seeded) if s], cotangents, strict=True))
    values = dict(zip([i for i, b in enumerate(base) if b.is_input], given, strict=True))
    outputs = [b for b in base if b.is_result]

    def moved(h: float) -> float:
        directions = iter(tangents)
        there = [x + (h * next(directions)).astype(x.dtype) if f else x for x, f in zip(given, floating, strict=True)]
        found = kernel.run((), there)
        return pair(cotangents, [r for r, b in zip(found, outputs, strict=True) if b.is_floating])

    forward = results(on_cpu(derived(kernel, Jvp(wanted))), [*given, *tangents])
    reverse = derived(kernel, Vjp(wanted, seeded))
    splits = reverse.count is None and sweeps != "together"
    split = _split(kernel, wanted, seeded, values, weights) if splits else None
    combined = split if split is not None and sweeps == "apart" else _pull(reverse, values, weights, {})
    split = combined if split is None else split
    inputs = [i for i, w in enumerate(wanted) if w]
    return Numbers(
        (moved(step) - moved(-step)) / (2 * step),
        pair(cotangents, [forward["tangent", i] for i in weights]),
        pair(tangents, [combined[i] for i in inputs]),
        pair(tangents, [split[i] for i in inputs]),
    )


def _split(
    kernel: Native, wanted: tuple[bool, ...], seeded: tuple[bool, ...], values: dict, cotangents: dict
) -> dict[int, np.ndarray]:
    """The cotangents of the inputs from two kernels, the tape between them."""
    kept = on_cpu(derived(kernel, Augmented(wanted, seeded)))
    finals = results(kept, [values[b.of] for b in kept.buffers if b.is_input])
    return _pull(derived(kernel, Pullback(wanted, seeded)), values, cotangents, finals)


def _pull(
    function: DeviceFunction, values: dict, cotangents: dict, finals: dict[tuple[str, int], np.ndarray]
) -> dict[int, np.ndarray]:
    """The cotangents of the inputs, by number of the buffer."""
    given = {"primal": values, "initial": values, "shadow": cotangents}
    arrays = [
        finals["tape", -1] if b.role == "tape" else finals["primal", b.of] if b.role == "final" else given[b.role][b.of]
        for b in function.buffers
        if b.is_input
    ]
    return {of: r for (role, of), r in run(function, arrays).items() if role == "shadow"}


def agree(numbers: Numbers, tolerance: float = 1e-9, difference_tolerance: float = 1e-6) -> None:
    """Raises AssertionError, showing the numbers, where they do not agree."""
    size = max(abs(numbers.forward), abs(numbers.differences), 1e-8)
    assert abs(numbers.forward - numbers.combined) <= tolerance * size, f"forward and reverse differ: {numbers}"
    assert abs(numbers.split - numbers.combined) <= tolerance * size, f"split and combined differ: {numbers}"
    assert abs(numbers.forward - numbers.differences) <= difference_tolerance * size, f"differences disagree: {numbers}"
