"""Derivatives of CUDA kernels for GPUs: the one place that runs bind, canonicalise, derive and PTX in order.

It answers the same questions as `codegen.derived` does for the CPU, and keeps as much: what it made, in this process;
layouts and PTX, on disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache, cached_property
from typing import Any

from jax_enzyme.ad import device as engine
from jax_enzyme.ad.shortcuts import ExactComparison, general, later, varied_inputs
from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.codegen import race_warnings, shortcut_warnings
from jax_enzyme.codegen.derived import check_buffers, predicted
from jax_enzyme.codegen.gpu.architecture import architecture, target
from jax_enzyme.codegen.gpu.code_object import code_object
from jax_enzyme.codegen.gpu.library import library_path
from jax_enzyme.codegen.gpu.primal import device_primal
from jax_enzyme.codegen.gpu.ptx import ptx
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.codegen.programs import specialisation_key
from jax_enzyme.codegen.stored import buffer_from
from jax_enzyme.errors import DifferentiationError, LoweringError
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Derivation, Jvp, Pullback, Step, Vjp
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.options import Options
from jax_enzyme.own_sources import own_digest
from jax_enzyme.rules.user import rules_of
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.buffers import buffers_of
from jax_enzyme.transform.device.smaller_blocks import in_smaller_blocks
from jax_enzyme.transform.input_writes import accesses_behind
from jax_enzyme.working import working

REMEDY = 'run it on the CPU, where more is differentiable: jax.default_device(jax.devices("cpu")[0])'


@dataclass(frozen=True)
class Layout:
    """How a device function is called. `buffers` are all that it takes; the first ones that `ir.arrays` speaks of are
    those numbered `visible`, in order; the others are working memory of its own. Where some grow, `room` is the number
    of the buffer into which a kernel counts how much memory a thread needs, and `count_shared` is that kernel's shared
    memory. `last_in_one_block`: see `ir.device`."""

    buffers: tuple[Buffer, ...]
    visible: tuple[int, ...]
    shape: Shape
    stages: int
    room: int | None = None
    count_shared: int = 0
    last_in_one_block: bool = False

    @property
    def tape_bytes(self) -> int:
        """Bytes of tape that all threads take, as far as they are known before the launch."""
        return sum(b.nbytes for b in self.buffers if b.role == "tape" and not b.grows)

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Layout:
        fields: dict[str, Any] = json.loads(data)
        rows: list[dict[str, Any]] = fields["buffers"]
        shape: dict[str, Any] = fields["shape"]
        made = Shape(tuple(shape["grid"]), tuple(shape["block"]), shape["shared"])
        rest = (fields["stages"], fields["room"], fields["count_shared"], fields["last_in_one_block"])
        return Layout(tuple(buffer_from(row) for row in rows), tuple(fields["visible"]), made, *rest)


@dataclass(frozen=True, eq=False)
class Derived:
    """A device function, and which of its buffers are visible (see Layout)."""

    function: DeviceFunction
    visible: tuple[int, ...]

    @property
    def layout(self) -> Layout:
        function = self.function
        own = (function.buffers, self.visible, function.shape, len(function.symbols))
        count = function.count
        rest = (None, 0) if count is None else (count.room, count.function.shape.shared)
        return Layout(*own, *rest, function.last_in_one_block)


def layout(
    program: Program, signature: Signature, binding: Binding, steps: Derivation = (), options: Options | None = None
) -> tuple[Buffer, ...]:
    """The visible buffers of a derivative. Runs the engine where they follow from its plan (tapes)."""
    if not any(isinstance(s, Augmented | Pullback) for s in steps):
        return predicted(buffers_of(signature, binding), steps)
    found = call_layout(program, signature, binding, steps, options)
    return tuple(found.buffers[i] for i in found.visible)


def split(program: Program, signature: Signature, binding: Binding, step: Vjp, options: Options | None = None) -> bool:
    """Can this derivative be split into a kernel that leaves a tape of fixed size, and a pullback?"""
    return Job(program, signature, binding, (step,), options or Options()).split()


def call_layout(
    program: Program, signature: Signature, binding: Binding, steps: Derivation = (), options: Options | None = None
) -> Layout:
    """All that a call has to know."""
    job = Job(program, signature, binding, steps, options or Options())
    race_warnings.warn(program, signature, binding, own_digest)
    if steps:
        shortcut_warnings.warn(program.key, program.symbol, program.source_name, job.comparisons())
    return job.layout()


def derived(
    program: Program, signature: Signature, binding: Binding, steps: Derivation = (), options: Options | None = None
) -> Derived:
    """A kernel or a derivative of it as the device function that is launched. Not to be changed: others share it."""
    return Job(program, signature, binding, steps, options or Options()).launched()


def build_code(
    program: Program,
    signature: Signature,
    binding: Binding,
    steps: Derivation,
    options: Options,
    device: str,
    dimensions: int,
    counts: bool = False,
) -> str | bytes:
    """The code of a derivative for a device, and a batch of so many dimensions, or of what `counts` the memory that it
    needs: PTX for one of NVIDIA's (`sm_87`), a code object for one of AMD's (`gfx90a:sramecc+:xnack-`)."""
    job = Job(program, signature, binding, steps, options)
    arch = architecture(device)
    make = job.ptx if target(arch).vendor == "NVIDIA" else job.code_object
    return make(arch, dimensions, counts)


_canonical: Memo[Derived] = Memo(64)
_general: Memo[tuple[Derived, tuple[ExactComparison, ...]]] = Memo(64)
_derived: Memo[Derived] = Memo(64)
_launched: Memo[Derived] = Memo(64)


@dataclass(frozen=True)
class Job:
    """One derivative of one specialisation of one kernel."""

    program: Program
    signature: Signature
    binding: Binding
    steps: Derivation
    options: Options

    @cached_property
    def key(self) -> str:
        """Says which derivative of which kernel, made how and by which version of us."""
        base = specialisation_key(self.program, self.signature, self.binding)
        return digest(base, repr(self.steps), repr(self.options), _environment())

    def layout(self) -> Layout:
        stored = self._stored("layout", lambda: self.launched().layout.to_bytes())
        return Layout.from_bytes(stored)

    def ptx(self, arch: str, dimensions: int, counts: bool) -> str:
        """PTX; the assembly of GPUs of AMD's."""

        def make(function: DeviceFunction) -> bytes:
            return ptx(function, arch, dimensions=dimensions, fast_math=self.options.fast_math).encode()

        return self._code("assembly", arch, dimensions, counts, make).decode()

    def code_object(self, arch: str, dimensions: int, counts: bool) -> bytes:
        """What GPUs of AMD's load."""

        def make(function: DeviceFunction) -> bytes:
            return code_object(function, arch, dimensions=dimensions, fast_math=self.options.fast_math)

        return self._code("code object", arch, dimensions, counts, make)

    def _code(
        self, what: str, arch: str, dimensions: int, counts: bool, make: Callable[[DeviceFunction], bytes]
    ) -> bytes:
        def made() -> bytes:
            function = self.launched().function
            if counts:
                assert function.count is not None
                function = function.count.function
            return make(function)

        return self._stored(f"{what} {arch} {dimensions} {counts} {_library(arch)}", made)

    def split(self) -> bool:
        (step,) = self.steps
        assert isinstance(step, Vjp)

        def decide() -> bytes:
            return b"1" if engine.splittable(self.differentiated()[0].function, step, self.options) else b"0"

        return self._stored("split", decide) == b"1"

    def derived(self) -> Derived:
        return _derived.get(self.key, self._derive)

    def launched(self) -> Derived:
        """What runs: sums as the options want them, and no copy of what is read alone. Derivatives are taken of
        `derived`."""

        def make() -> Derived:
            found = self.derived()
            if self.options.deterministic:
                with _said_of_devices():
                    found = replace(found, function=engine.reproducible(found.function))
            elif self.steps:
                found = replace(found, function=engine.in_copies(engine.finished(found.function)))
            elif any(b.zero for b in found.function.buffers):
                with suppress(DifferentiationError):  # by its own derivatives: what has none is cleared
                    found = replace(found, function=engine.uncleared(found.function, self.canonical().function))
            return replace(found, function=_uncopied(found.function)) if self.steps else found

        return _launched.get(self.key, make)

    def canonical(self) -> Derived:
        """In the form that the engine differentiates."""

        def make() -> Derived:
            found = self.derived()
            return replace(found, function=in_smaller_blocks(engine.canonical(found.function)))

        return _canonical.get(self.key, make)

    def before(self) -> Job:
        """The same without the last step."""
        return replace(self, steps=self.steps[:-1])

    def differentiated(self) -> tuple[Derived, tuple[ExactComparison, ...]]:
        """What the last step is applied to: a kernel without the comparisons that are proved shortcuts; and these."""
        before, step = self.before(), self.steps[-1]
        if before.steps:
            return before.canonical(), ()
        masks = step.tangents if isinstance(step, Jvp) else (step.wanted, step.seeded)

        def make() -> tuple[Derived, tuple[ExactComparison, ...]]:
            base = before.canonical()
            function = base.function
            flat = ArrayFunction(function.module, function.symbols[0], function.buffers)
            found = general(flat, _of_device(base, step), rules_of(function.module))
            if found.function is not flat:
                base = replace(base, function=replace(function, module=found.function.module))
            return base, found.comparisons

        return _general.get(digest(before.key, repr(masks)), make)

    def comparisons(self) -> tuple[ExactComparison, ...]:
        """The comparisons of the kernel with exact values that this derivative of it depends on."""

        def make() -> bytes:
            first = replace(self, steps=self.steps[:1])
            found = first.differentiated()[1]
            if len(self.steps) > 1:
                given = (self.program, self.signature, self.binding)
                layouts = [layout(*given, self.steps[:n], self.options) for n in range(len(self.steps))]
                wider = Jvp(varied_inputs(self.steps, layouts))
                found = later(found, replace(first, steps=(wider,)).differentiated()[1])
            return shortcut_warnings.to_bytes(found)

        return shortcut_warnings.from_bytes(self._stored("comparisons", make))

    def _derive(self) -> Derived:
        if not self.steps:
            primal = device_primal(self.program, self.signature, self.binding)
            return Derived(primal, tuple(range(len(primal.buffers))))
        base, step = self.differentiated()[0], self.steps[-1]
        own = _of_device(base, step)
        with _said_of_devices():
            function = engine.derive(base.function, own, self.options)
        return Derived(function, _visible(base, own, function))

    def _stored(self, what: str, make: Callable[[], bytes]) -> bytes:
        """What is on disk for a question about this derivative, or is made and put there."""
        disk, key = DiskCache.named("gpu"), digest(self.key, what)
        data = disk.get(key)
        if data is None:
            with working(f"making {what} of `{self.program.symbol}` for GPUs"):
                data = make()
            disk.put(key, data)
        return data


def _uncopied(function: DeviceFunction) -> DeviceFunction:
    """With cotangents of outputs as inputs, where nothing writes to them: XLA need not copy them then. What nobody
    touches takes no memory."""
    stages = [function.module.functions[s] for s in function.symbols]

    def slim(number: int, buffer: Buffer) -> Buffer:
        found = [i for stage in stages for i in accesses_behind(stage.arguments[number], stage)]
        if buffer.io == "scratch" and not buffer.grows and not found and function.count is None:
            return replace(buffer, shape=(0,), zero=False)
        if buffer.io == "inout" and buffer.discard and all(isinstance(i, I.Load) for i in found):
            return replace(buffer, io="in", discard=False)
        return buffer

    return replace(function, buffers=tuple(slim(n, b) for n, b in enumerate(function.buffers)))


@contextmanager
def _said_of_devices() -> Generator[None]:
    """Refusals that say what else there is."""
    try:
        yield
    except DifferentiationError as error:
        raise type(error)(
            error.cause, error.place, f"{error.remedy}; or {REMEDY}" if error.remedy else REMEDY
        ) from error


def _of_device(base: Derived, step: Step) -> Step:
    """A step in terms of all buffers of its base."""

    def wide(mask: tuple[bool, ...]) -> tuple[bool, ...]:
        given = dict(zip(base.visible, mask, strict=True))
        return tuple(given.get(i, False) for i in range(len(base.function.buffers)))

    return Jvp(wide(step.tangents)) if isinstance(step, Jvp) else type(step)(wide(step.wanted), wide(step.seeded))


def _visible(base: Derived, step: Step, function: DeviceFunction) -> tuple[int, ...]:
    """The visible buffers of a derivative. What the engine delivers is what `ir.arrays` says, and working memory."""
    buffers = function.buffers
    if isinstance(step, Augmented | Pullback):
        check_buffers(buffers, base.function.buffers, step)
        return tuple(range(len(buffers)))
    expected = predicted(base.function.buffers, (step,))
    check_buffers(buffers[: len(expected)], base.function.buffers, step)
    extra = buffers[len(expected) :]
    if not all(b.role == "tape" and b.io == "scratch" for b in extra):
        raise LoweringError(
            f"the engine delivered the buffers {extra} besides",
            remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
        )
    known = frozenset(base.visible)
    return tuple(i for i, b in enumerate(expected) if b.of in known)


@cache
def _environment() -> str:
    return digest(host().compiler, own_digest())


@cache
def _library(arch: str) -> str:
    path = library_path(target(arch))
    return "" if path is None else digest(path.read_bytes())
