"""From a program to callable derivatives: the one place that runs bind, canonicalise, derive and compile in order.

Everything is remembered three times over: what is callable, in this process, by content, as long as somebody uses it
and a while longer; its object code, on disk, for the next process, which then needs neither LLVM nor the engine; and,
for as long as a kernel is in use, the canonical module that all its derivatives start from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.codegen import race_warnings, shortcut_warnings
from jax_enzyme.codegen.environment import environment
from jax_enzyme.codegen.loading import Built, loaded
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.codegen.programs import has_teams, program_module, specialisation_key
from jax_enzyme.codegen.stored import Stored
from jax_enzyme.errors import DifferentiationError, LoweringError
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir.arrays import (
    ArrayFunction,
    Augmented,
    Buffer,
    Derivation,
    Jvp,
    Pullback,
    Step,
    Vjp,
    jvp_buffers,
    shadow_buffers,
    vjp_buffers,
    wide_buffers,
)
from jax_enzyme.ir.marks import has_marks
from jax_enzyme.options import Options
from jax_enzyme.own_sources import have_changed, own_digest
from jax_enzyme.rules.mpi.table import binary_interface
from jax_enzyme.rules.user import rules_of, withholds
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.transform.bind import bind
from jax_enzyme.transform.buffers import buffers_of
from jax_enzyme.working import LOG, working

if TYPE_CHECKING:
    from jax_enzyme.ad.shortcuts import ExactComparison, General
    from jax_enzyme.codegen.primal import Primal


def build(
    program: Program, signature: Signature, binding: Binding, steps: Derivation = (), options: Options | None = None
) -> Built:
    """A kernel (no steps) or a derivative of it as a callable address. Safe to call from several threads."""
    return _Job(program, signature, binding, steps, options or Options()).build()


def layout(
    program: Program, signature: Signature, binding: Binding, steps: Derivation = (), options: Options | None = None
) -> tuple[Buffer, ...]:
    """The buffers of a derivative. Runs the engine where they follow from its plan (tapes)."""
    return _Job(program, signature, binding, steps, options or Options()).layout()


def split(program: Program, signature: Signature, binding: Binding, step: Vjp, options: Options | None = None) -> bool:
    """Can this derivative be split into a forward sweep that leaves a tape, and a pullback?"""
    return _Job(program, signature, binding, (step,), options or Options()).split()


def widens(
    program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options | None = None
) -> bool:
    """Can this derivative, whose last step has lanes, take several directions at once?"""
    return _Job(program, signature, binding, steps, options or Options()).widens()


def require_repeatable(
    program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options | None = None
) -> None:
    """Raises DifferentiationError where a first derivative, which runs the kernel again, may find something else than
    the kernel did."""
    _Job(program, signature, binding, steps, options or Options()).require_repeatable()


def derived(
    program: Program, signature: Signature, binding: Binding, steps: Derivation = (), options: Options | None = None
) -> ArrayFunction:
    """A kernel or a derivative of it as IR, before the last optimisation. Not to be changed: others share it."""
    return _Job(program, signature, binding, steps, options or Options()).derived()


def sharing(
    program: Program, signature: Signature, binding: Binding, steps: Derivation = (), options: Options | None = None
) -> tuple[str, ...]:
    """For every loop over blocks of a CUDA kernel, or of a derivative of it: whether several threads run it, and if
    not, why."""
    return _Job(program, signature, binding, steps, options or Options()).sharing()


def copied_inputs(
    program: Program, signature: Signature, binding: Binding, options: Options | None = None
) -> tuple[str, ...]:
    """The inputs that a kernel writes to, and works on copies of."""
    return _Job(program, signature, binding, (), options or Options()).copied()


def first_run(
    program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options | None = None
) -> ArrayFunction:
    """The same as it runs first: a reverse sweep without masks, where there is one."""
    job = _Job(program, signature, binding, steps, options or Options())
    return job.first_run(job.derived())


def regular(program: Program, signature: Signature, binding: Binding, options: Options | None = None) -> ArrayFunction:
    """A kernel in the form that the engine differentiates. Not to be changed: others share it."""
    return _Job(program, signature, binding, (), options or Options()).canonical()


def differentiated(
    program: Program, signature: Signature, binding: Binding, step: Step, options: Options | None = None
) -> General:
    """What a derivative of a kernel is built from: the same form, without the comparisons that are proved shortcuts for
    this derivative. Not to be changed: others share it."""
    return _Job(program, signature, binding, (step,), options or Options()).differentiated()


_primal: Memo[Primal] = Memo(64)
_canonical: Memo[ArrayFunction] = Memo(64)
_general: Memo[General] = Memo(64)
_derived: Memo[ArrayFunction] = Memo(64)
_shared: Memo[tuple[ArrayFunction, tuple[str, ...]]] = Memo(8)
_built: Memo[Built] = Memo(64)
_alive: WeakValueDictionary[str, Built] = WeakValueDictionary()
_answers: Memo[bool] = Memo(1024)


_NOUNS = {Jvp: "the JVP", Vjp: "the VJP", Augmented: "the forward sweep", Pullback: "the pullback"}


@dataclass(frozen=True)
class _Job:
    """One derivative of one specialisation of one kernel."""

    program: Program
    signature: Signature
    binding: Binding
    steps: Derivation
    options: Options
    whole: bool = False
    """With the bodies of functions that have rules: the kernel itself as it runs."""
    noted: bool = False
    """With the place of each instruction noted, which goes along into derivatives of derivatives."""

    def __str__(self) -> str:
        steps = " of ".join(_NOUNS[type(step)] for step in reversed(self.steps))
        dims = ", ".join(f"{name}={value}" for name, value in self.binding.dims)
        return f"{steps} of `{self.program.symbol}`".removeprefix(" of ") + (f" ({dims})" if dims else "")

    @cached_property
    def base_key(self) -> str:
        """Says which specialisation of which kernel."""
        key = specialisation_key(self.program, self.signature, self.binding)
        team = self.options.threads if has_teams(self.program) else None
        key = digest("noted", key) if self.noted else key
        return digest("whole" if self.whole else "", key, str(team)) if self.whole or team else key

    @cached_property
    def key(self) -> str:
        """Says which derivative, compiled how, by which version of us and for which machine."""
        return digest(self.base_key, repr(self.steps), repr(self.options), environment())

    def build(self) -> Built:
        def make() -> Built:
            return _alive.get(self.key) or loaded(self._stored(), self.key, self.program.libraries)

        built = _alive.setdefault(self.key, _built.get(self.key, make))
        race_warnings.warn(self.program, self.signature, self.binding, own_digest)
        if self.steps:
            shortcut_warnings.warn(self.program.key, self.program.symbol, self.program.source_name, self.comparisons())
        return built

    def layout(self) -> tuple[Buffer, ...]:
        if self.lanes:
            return wide_buffers(self.narrow().layout(), self.steps[-1])
        if any(isinstance(s, Augmented | Pullback) for s in self.steps):
            alone = digest("layout", self.key)  # of what is asked about, and perhaps never built
            stored = _disk().get(self.key) or _disk().get(alone)
            if stored is None:
                with working(f"planning {self}"):
                    stored = Stored(self.derived().buffers, False, b"").to_bytes()
                _keep(alone, stored)
            return Stored.from_bytes(stored).buffers
        return predicted(buffers_of(self.signature, self.binding), self.steps)

    def split(self) -> bool:
        def decide() -> bool:
            (step,) = self.steps
            assert isinstance(step, Vjp)
            return engine().ad.splittable(self.differentiated().function, step, self.options, in_process=True)

        return self._answered("split", decide)

    def widens(self) -> bool:
        def decide() -> bool:
            try:
                self.derived()
            except engine().NotLinear as reason:
                LOG.info("%s is called for one direction after the other: %s", self.narrow(), reason)
                return False
            return True

        return self._answered("widens", decide)

    def _answered(self, question: str, decide: Callable[[], bool]) -> bool:
        """The answer to a question about this derivative, which takes planning it."""
        key = digest(question, self.key)

        def answer() -> bool:
            known = _disk().get(key)
            if known is None:
                with working(f"planning {self}"):
                    known = b"1" if decide() else b"0"
                _keep(key, known)
            return known == b"1"

        return _answers.get(key, answer)

    @property
    def lanes(self) -> int:
        """How many directions the last step is for at once; 0: one."""
        return self.steps[-1].lanes if self.steps else 0

    def narrow(self) -> _Job:
        """The same for one direction."""
        return replace(self, steps=(*self.steps[:-1], replace(self.steps[-1], lanes=0)))

    def derived(self) -> ArrayFunction:
        return _derived.get(self.key, self._derive) if self.steps else self.canonical()

    def bound(self) -> ArrayFunction:
        """The kernel itself as an array function, as its compiler left it, in a module of its own."""
        module = program_module(self.program, self.signature, self.binding, threads=self.options.threads or 1)
        if not self.whole:
            module = engine().withhold(module, self.program.symbol)
        engine().library.link_bodies(module)
        function = bind(module, self.program.symbol, self.signature, self.binding)
        engine().keep_places(function.module)
        return function

    def primal(self) -> Primal:
        """The same as it runs, and what was found out about its inputs."""
        return _primal.get(self.base_key, lambda: engine().primal(self.bound()))

    def copied(self) -> tuple[str, ...]:
        """The inputs that it has copies of."""
        return self.primal().copied

    def before(self) -> _Job:
        """The same without the last step."""
        return replace(self, steps=self.steps[:-1])

    def canonical(self) -> ArrayFunction:
        """The same in the form that the engine differentiates."""

        def make() -> ArrayFunction:
            if self.noted and not self.steps:
                return engine().with_places_noted(replace(self, noted=False).canonical())
            flat = engine().canonical(self.derived()) if self.steps else self.primal().canonical
            if self.steps or self.program.launch is not None:
                return flat
            marked = engine().mark_proved_loops(flat)
            rows = engine().note_rows(marked if "rows" in self.options.without else engine().sum_rows(marked))
            return rows if "lockstep" in self.options.without else engine().note_lockstep(rows)

        return _canonical.get(self.key, make)

    def differentiated(self) -> General:
        """What the last step is applied to. A derivative's own comparisons are the engine's, and stay."""
        before, step = self.before(), self.steps[-1]
        if before.steps:
            return engine().General(before.canonical(), ())
        masks = step.tangents if isinstance(step, Jvp) else (step.wanted, step.seeded)
        key = digest("general", before.key, repr(masks))
        return _general.get(key, lambda: before.generalised(step))

    def generalised(self, step: Step) -> General:
        """What a first step is applied to."""
        base = engine().name_choices(self.canonical())
        rules = rules_of(base.module)
        found = engine().general(base, step, rules)
        if isinstance(step, Jvp):
            return replace(found, function=engine().look_at_kinds(found.function))
        kept = engine().keep_choices(found.function, step, rules)
        if self.program.launch is None:
            kept = engine().compute_best_again(kept, step, rules)
        return replace(found, function=engine().look_at_kinds(kept))

    def comparisons(self) -> tuple[ExactComparison, ...]:
        """The comparisons of the kernel with exact values that this derivative of it depends on."""
        if self.lanes:
            return self.narrow().comparisons()
        key = digest("comparisons", self.key)
        data = _disk().get(key)
        if data is None:
            with working(f"planning {self}"):
                data = shortcut_warnings.to_bytes(self._comparisons())
            _keep(key, data)
        return shortcut_warnings.from_bytes(data)

    def _comparisons(self) -> tuple[ExactComparison, ...]:
        first = replace(self, steps=self.steps[:1])
        found = first.differentiated().comparisons
        if len(self.steps) == 1:
            return found
        layouts = [replace(self, steps=self.steps[:n]).layout() for n in range(len(self.steps))]
        wider = Jvp(engine().varied_inputs(self.steps, layouts))
        return engine().later(found, replace(first, steps=(wider,)).differentiated().comparisons)

    def _derive(self) -> ArrayFunction:
        try:
            return self._derive_once()
        except DifferentiationError as error:
            if error.place is not None or self.noted or not self.before().steps:
                raise
            placeless = error
        replace(self, noted=True).derived()  # refused as well, with the place in the source
        raise placeless

    def _derive_once(self) -> ArrayFunction:
        if self.lanes:
            return engine().in_directions(self.narrow().canonical(), self.steps[-1])
        base, step = self.differentiated().function, self.steps[-1]
        if type(step) is Vjp and not self.before().steps:
            self.require_repeatable()
        if not isinstance(step, Jvp):
            base = engine().with_tape_bodies(base)
        result = engine().ad.derive(base, (step,), self.options)
        check_buffers(result.buffers, base.buffers, step)
        return replace(result, module=engine().library.with_rules(result.module))

    def require_repeatable(self) -> None:
        """Raises DifferentiationError where this derivative, which runs the kernel again, may find something else than
        the kernel did."""
        if not self._answered("repeatable", lambda: not any(self._hindrances())):
            raise next(self._hindrances())

    def _hindrances(self) -> Iterator[DifferentiationError]:
        base = self.before().canonical()
        return engine().hindrances(base, self.steps[-1], rules_of(base.module))

    def _stored(self) -> Stored:
        data = _disk().get(self.key)
        if data is not None:
            LOG.info("%s is in the disk cache", self)
            return Stored.from_bytes(data)
        if not self.steps and not self.whole and withholds(self.program.ir):
            stored = replace(self, whole=True)._stored()
            _keep(self.key, stored.to_bytes())
            return stored
        with working(f"compiling {self}"):
            return self._compiled()

    def _compiled(self) -> Stored:
        # A kernel itself goes through the canonical form too: what is hoisted and refused there is so for every mode.
        function = self.derived() if self.steps else self.canonical()
        careful = None
        if self.options.sanitize:
            function = self._shared(function)[0] if self.steps else function
            function = engine().with_native_bodies(self._checked(function), self.program)
        else:
            first = self.first_run(function)
            careful = None if first is function else engine().guard_divisions(function)
            shared = self._shared(first)[0]
            function = engine().guard_divisions(engine().with_native_bodies(shared, self.program))
        stored = engine().compiled(function, self.options, careful)
        _keep(self.key, stored.to_bytes())
        return stored

    def _checked(self, function: ArrayFunction) -> ArrayFunction:
        """The kernel with checks, or a derivative behind it. A pullback comes behind a forward sweep that is."""
        if any(isinstance(step, Pullback) for step in self.steps):
            return engine().guard_divisions(function)
        from jax_enzyme.transform.sanitize import outside  # few kernels are checked

        limit = self.options.time_limit
        threads = self.options.threads or 1
        module = program_module(self.program, self.signature, self.binding, threads=threads, as_written=True)
        engine().library.link_bodies(module)
        plain = bind(module, self.program.symbol, self.signature, self.binding)
        plain = engine().prepare_calls(outside.with_checked_promises(plain))
        checked = outside.sanitized(plain, 0 if limit is None else max(1, round(1000 * limit)))
        return outside.with_checks(engine().guard_divisions(function), checked) if self.steps else checked

    def sharing(self) -> tuple[str, ...]:
        function = self.first_run(self.derived()) if self.steps else self.canonical()
        verdicts = self._shared(function)[1]
        if self.options.threads is not None or binary_interface(function.module) is None:
            return verdicts
        alone = "on one thread: the kernel calls MPI, and `Options(threads=...)` says nothing"
        shared = engine().SHARED
        return tuple(v.removesuffix(shared) + alone if v.endswith(shared) else v for v in verdicts)

    def first_run(self, function: ArrayFunction) -> ArrayFunction:
        """The same function; of a first reverse sweep the one without its masks, which runs first."""
        first = len(self.steps) == 1 and not isinstance(self.steps[0], Jvp)
        if not first or self.options.fast_math or self.options.sanitize or "unmasked" in self.options.without:
            return function
        if not self.lanes:
            return engine().without_masks(function) or function
        narrow = self.narrow().derived()
        unmasked = engine().without_masks(narrow)
        return function if unmasked is None else engine().in_directions(engine().canonical(unmasked), self.steps[-1])

    def _shared(self, function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
        """The same function, its loops and blocks for several threads where they are independent."""
        return _shared.get(self.key, lambda: self._share(function))

    def _share(self, function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
        launch = self.program.launch
        if launch is None:
            return self._shared_by_marks(function)
        shape = launch.shape(dict(self.binding.dims))
        extents = [extent for extent in reversed(shape.grid) if extent > 1]
        if not extents:
            return function, ()
        if self.before_all().primal().has_state:
            return function, ("on one thread: `__device__` variables pass from block to block",)
        plain = engine().with_regular_loops(function) if self.steps else function
        regular = engine().without_needless_clears(plain)
        shared, verdicts = engine().share_loops(regular, extents, shape.rows)
        gains = shared is not plain or engine().has_guarded_loops(regular.module.functions[regular.symbol])
        return (shared if gains else function), verdicts

    def _shared_by_marks(self, function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
        if not has_marks(function.module):
            return self._in_lockstep(function, engine().with_regular_loops), ()
        plain = engine().canonical(function) if self.steps else engine().name_choices(function)
        regular = engine().without_needless_clears(plain)
        regular = engine().keep_restored_places(regular) if self.steps else regular
        shared, verdicts = engine().share_marked_loops(regular)
        together = self._in_lockstep(regular, lambda f: f)
        if together is not regular:
            also = engine().share_marked_loops(together)
            if _are_shared(also[1]) == _are_shared(verdicts):
                return also
        return (function if shared is regular else shared), verdicts

    def _in_lockstep(self, function: ArrayFunction, regular: Callable[[ArrayFunction], ArrayFunction]) -> ArrayFunction:
        """The same function with iterations of loops in lockstep. A derivative, of which `regular` makes one with
        regular loops, is not looked at where the kernel has no loop for that. It stays regular where it adds up what
        takes long where data say, of which strips are made, and where a range of a loop's iterations works alone."""
        if self.lanes or "lockstep" in self.options.without:
            return function
        if not self.steps:
            return engine().in_lockstep(function)
        kernel = self.before_all()
        base = kernel.canonical()
        adds = _answers.get(
            digest("adds", kernel.key), lambda: engine().reads_where_data_say(base.module.functions[base.symbol])
        )
        together = engine().has_lockstep(base)
        guarded = engine().has_guarded_loops(base.module.functions[base.symbol])
        if not (adds or together or guarded):
            return function
        before = regular(function)
        changed = engine().in_lockstep(before) if together else before
        stays = adds or (guarded and engine().has_guarded_loops(before.module.functions[before.symbol]))
        return function if changed is before and not stays else changed

    def before_all(self) -> _Job:
        """The kernel itself."""
        return replace(self, steps=())


def _are_shared(verdicts: tuple[str, ...]) -> list[bool]:
    return [verdict.endswith(engine().SHARED) for verdict in verdicts]


def predicted(base: tuple[Buffer, ...], steps: Derivation) -> tuple[Buffer, ...]:
    """The buffers after steps that keep no tape."""
    for step in steps:
        match step:
            case Jvp():
                base = jvp_buffers(base, step)
            case Vjp():
                base = vjp_buffers(base, step)
    return base


def check_buffers(buffers: tuple[Buffer, ...], base: tuple[Buffer, ...], step: Step) -> None:
    """What the engine delivers is what `ir.arrays` says: the run time relies on it without looking."""
    match step:
        case Augmented():
            expected, found = _shapes(base), _shapes(buffers[: len(base)])
        case Pullback():
            expected = shadow_buffers(base, step)
            found = buffers[len(buffers) - len(expected) :]
        case _:
            expected, found = predicted(base, (step,)), buffers
    if found != expected:
        raise LoweringError(
            f"the engine delivered the buffers {found} where {expected} were expected",
            remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
        )


def _shapes(buffers: tuple[Buffer, ...]) -> tuple[object, ...]:
    """What Augmented keeps of the buffers of its base; scratch that reverse reads becomes a result."""
    return tuple((b.name, b.dtype, b.shape, b.is_input) for b in buffers)


def engine():  # its type is that of the module
    """What makes code."""
    from jax_enzyme.codegen import engine  # a process that finds all that it needs on disk does without

    return engine


def _disk() -> DiskCache:
    return DiskCache.named("objects")


def _keep(key: str, data: bytes) -> None:
    """Leaves for other processes what the engine has made, if that is of the sources that the keys are of."""
    engine()
    if _is_current(len(sys.modules)):
        _disk().put(key, data)


@lru_cache(maxsize=1)
def _is_current(loaded: int) -> bool:  # asked again when more is loaded
    return not have_changed()
