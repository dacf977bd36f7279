"""Functions as JAX sees them: a specialised kernel, and what any sequence of derivation steps makes of it.

A `Function` is an immutable value whose equality is its contents, so it can be a parameter of a JAX primitive. All
questions about its buffers are answered here: which are operands, which are results, which belong together.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.ir import linking
from jax_enzyme.ir.arrays import Augmented, Buffer, Derivation, Jvp, Pullback, Step, Vjp
from jax_enzyme.options import Options
from jax_enzyme.rules.mpi.table import MPI, is_mpi
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature.formals import shared_by_threads
from jax_enzyme.xla_ffi.backend import PLATFORMS, Backend, Built, HostBackend, backend_of


@dataclass(frozen=True)
class Specialised:
    """A kernel with its dimensions and static integers bound: what code is generated from.

    `platform` is the one that this code is for; `others` are the same function for other platforms, of the same
    signature and binding. What is true of one is true of all, but what a tape looks like. `backend` makes the code;
    None means the platform's own.
    """

    program: Program
    signature: Signature
    binding: Binding
    options: Options
    platform: str = "cpu"
    backend: Backend | None = field(default=None, repr=False, compare=False)
    others: tuple[Specialised, ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash((self.program, self.signature, self.binding, self.options))

    def __hash__(self) -> int:
        return self._hash

    @property
    def name(self) -> str:
        return self.program.symbol

    @property
    def called(self) -> str:
        """What its source calls it."""
        return str(replace(spelling(self.program.symbol), parameters=None))

    @cached_property
    def communicates(self) -> bool:
        """Whether it calls MPI: its calls are in one order on all processes, and none is left out."""
        ir = self.program.ir
        return (MPI in ir or MPI.lower() in ir) and any(map(is_mpi, linking.names(ir).needed))

    @cached_property
    def maker(self) -> Backend:
        """What makes the code."""
        return self.backend or backend_of(self.platform)

    def on(self, platform: str) -> Specialised:
        """The one of these functions that is for a platform, alone."""
        every = (self, *self.others)
        found = next((one for one in every if one.platform == platform), None)
        if found is None:
            there = " and ".join(one.platform for one in every)
            if self.program.device:
                raise LoweringError(
                    f"`{self.name}` is a host function: it allocates, copies and launches, and runs on the CPU alone",
                    self.program.source_name,
                    "make kernels of what it launches, with grid= and block=, or run it elsewhere: "
                    'jax.default_device(jax.devices("cpu")[0])',
                )
            shared = shared_by_threads(self.signature.formals)
            if self.program.launch is not None and platform == "cuda" and shared is not None:
                raise LoweringError(
                    f"`{shared.text('in')}` lies behind a pointer that all threads share: it is made on the CPU alone",
                    self.program.source_name,
                    'give the kernel arrays, or run it elsewhere: jax.default_device(jax.devices("cpu")[0])',
                )
            join = f'join it with one that has, kernel.on("{platform}", other), or ' if platform in PLATFORMS else ""
            raise LoweringError(
                f"kernel `{self.name}` has no code for {platform}: it is written in {self.program.lang}, for {there}",
                self.program.source_name,
                f'{join}run it elsewhere: jax.default_device(jax.devices("{self.platform}")[0])',
            )
        return replace(found, others=()) if found.others else found


@dataclass(frozen=True, eq=False)
class Function:
    """A derived function: `steps` applied to a specialised kernel, first step first. Made by `function` and `then`,
    which give the same object for the same contents."""

    base: Specialised
    steps: Derivation

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Function) and self.steps == other.steps and self.base == other.base)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.base, self.steps))

    def __repr__(self) -> str:
        text = self.base.name
        for step in self.steps:
            text = f"{type(step).__name__.lower()}({text})"
        return text

    def then(self, step: Step) -> Function:
        """This function's derivative."""
        return function(self.base, (*self.steps, step))

    def on(self, platform: str) -> Function:
        """This function as it is on a platform, and nowhere else. Not for steps that a tape belongs to."""
        base = self.base.on(platform)
        return self if base is self.base else function(base, self.steps)

    @cached_property
    def parent(self) -> Function:
        """The function that the last step was applied to."""
        return function(self.base, self.steps[:-1])

    @cached_property
    def last(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        base = self.base
        return base.maker.layout(base.program, base.signature, base.binding, self.steps, base.options)

    @cached_property
    def operands(self) -> tuple[int, ...]:
        """The buffers that go in, in order."""
        return tuple(i for i, buffer in enumerate(self.buffers) if buffer.is_input)

    @cached_property
    def results(self) -> tuple[int, ...]:
        """The buffers that come out, in order."""
        return tuple(i for i, buffer in enumerate(self.buffers) if buffer.is_result)

    @cached_property
    def linear_operands(self) -> tuple[int, ...]:
        """The operands that the function is linear in by construction: the last step's tangents or cotangents."""
        role = "tangent" if isinstance(self.last, Jvp) else "shadow"
        return tuple(i for i in self.operands if self.steps and self.buffers[i].role == role)

    @cached_property
    def linear_results(self) -> tuple[int, ...]:
        """The results that are linear in `linear_operands`; the others do not depend on them."""
        role = "tangent" if isinstance(self.last, Jvp) else "shadow"
        return tuple(i for i in self.results if self.steps and self.buffers[i].role == role)

    @cached_property
    def can_split(self) -> bool:
        """For a Vjp step on the kernel itself: whether the derivative splits at a tape of static size."""
        base, step = self.base, self.last
        if len(self.steps) != 1 or not isinstance(step, Vjp):
            return False
        return base.maker.split(base.program, base.signature, base.binding, step, base.options)

    @cached_property
    def augmented(self) -> Function:
        """For a Vjp step: the function that keeps a tape for it."""
        step = self.last
        assert isinstance(step, Vjp)
        return self.parent.then(Augmented(step.wanted, step.seeded))

    @cached_property
    def pullback(self) -> Function:
        """For a Vjp step: the reverse sweep that reads the tape."""
        step = self.last
        assert isinstance(step, Vjp)
        return self.parent.then(Pullback(step.wanted, step.seeded))

    @cached_property
    def residuals(self) -> tuple[int, ...]:
        """For a Vjp step that splits: the buffers of `pullback` that `augmented` left."""
        found = enumerate(self.pullback.buffers)
        return tuple(i for i, buffer in found if buffer.is_input and buffer.role in ("final", "tape"))

    @cached_property
    def dependencies(self) -> tuple[frozenset[int], ...]:
        """Per result: the operands that it can depend on. The primal results of a Jvp do not see its tangents."""
        everything = frozenset(self.operands)
        if not isinstance(self.last, Jvp):
            return (everything,) * len(self.results)
        inner = dict(zip(self.parent.results, self.parent.dependencies, strict=True))
        return tuple(inner.get(i, everything) if self.buffers[i].role == "primal" else everything for i in self.results)

    @cached_property
    def cotangents(self) -> frozenset[int]:
        """The buffers that hold cotangents, or tangents of cotangents, at any level."""
        if not self.steps:
            return frozenset()
        inner = self.parent.cotangents
        found = enumerate(self.buffers)
        return frozenset(i for i, b in found if b.role == "shadow" or (b.role != "tape" and b.of in inner))

    def in_directions(self, lanes: int) -> Function | None:
        """A derivative for so many tangents or cotangents at once; None where they have to come one by one."""
        base, maker = self.base, self.base.maker
        if not self.steps or base.options.sanitize or base.communicates or not isinstance(maker, HostBackend):
            return None
        wide = function(base, (*self.steps[:-1], replace(self.steps[-1], lanes=lanes)))
        return wide if maker.widens(base.program, base.signature, base.binding, wide.steps, base.options) else None

    def require_repeatable(self) -> None:
        """For a derivative that runs behind the kernel and runs it again: raises DifferentiationError where it may find
        something else then."""
        base, maker = self.base, self.base.maker
        if len(self.steps) == 1 and isinstance(maker, HostBackend):
            maker.require_repeatable(base.program, base.signature, base.binding, self.steps, base.options)

    def build(self) -> Built:
        """The machine code, of a function for a platform whose code runs in this process."""
        base, maker = self.base, self.base.maker
        assert isinstance(maker, HostBackend)
        return maker.build(base.program, base.signature, base.binding, self.steps, base.options)


@lru_cache(maxsize=4096)
def function(base: Specialised, steps: Derivation = ()) -> Function:
    """The function that these steps make of a kernel: one object for one content."""
    return Function(base, steps)
