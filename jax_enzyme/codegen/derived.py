"""From a program to callable derivatives: the one place that runs bind, canonicalise, derive and compile in order.

Everything is remembered three times over: what is callable, in this process, by content, as long as somebody uses it
and a while longer; its object code, on disk, for the next process, which then needs neither LLVM nor the engine; and,
for as long as a kernel is in use, the canonical module that all its derivatives start from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from weakref import WeakValueDictionary

from jax_enzyme import ad
from jax_enzyme.ad.facts.reruns import hindrances
from jax_enzyme.ad.loop_choices import keep_choices
from jax_enzyme.ad.shortcuts import ExactComparison, General, general, later, varied_inputs
from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.codegen import library, race_warnings, shortcut_warnings
from jax_enzyme.codegen.canonical import canonical, with_regular_loops
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.memo import Memo
from jax_enzyme.codegen.native_bodies import with_native_bodies
from jax_enzyme.codegen.object import Built, compiled, loaded
from jax_enzyme.codegen.pipelines import long_compiler
from jax_enzyme.codegen.primal import Primal, primal
from jax_enzyme.codegen.programs import has_teams, program_module, specialisation_key
from jax_enzyme.codegen.short_rows import note_rows
from jax_enzyme.codegen.stored import Stored
from jax_enzyme.codegen.tape_bodies import with_tape_bodies
from jax_enzyme.codegen.vector_math import vector_library
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
from jax_enzyme.own_sources import own_digest
from jax_enzyme.rules.user import rules_of, withholds
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.transform.bind import bind
from jax_enzyme.transform.buffers import buffers_of
from jax_enzyme.transform.cuda.guarded_loops import has_guarded_loops
from jax_enzyme.transform.directions import NotLinear, in_directions
from jax_enzyme.transform.divisions import guard_divisions
from jax_enzyme.transform.first_writes import without_needless_clears
from jax_enzyme.transform.lockstep import in_lockstep
from jax_enzyme.transform.named_choices import name_choices
from jax_enzyme.transform.parallel_loops import share_marked_loops
from jax_enzyme.transform.places import keep_places
from jax_enzyme.transform.prepare import prepare_calls
from jax_enzyme.transform.proved_loops import mark_proved_loops
from jax_enzyme.transform.row_sums import sum_rows
from jax_enzyme.transform.sanitize import sanitized, with_checked_promises, with_checks
from jax_enzyme.transform.shared_loops import share_loops
from jax_enzyme.transform.withheld import withhold
from jax_enzyme.working import LOG, working


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

    def __str__(self) -> str:
        steps = " of ".join(_NOUNS[type(step)] for step in reversed(self.steps))
        dims = ", ".join(f"{name}={value}" for name, value in self.binding.dims)
        return f"{steps} of `{self.program.symbol}`".removeprefix(" of ") + (f" ({dims})" if dims else "")

    @cached_property
    def base_key(self) -> str:
        """Says which specialisation of which kernel."""
        key = specialisation_key(self.program, self.signature, self.binding)
        team = self.options.threads if has_teams(self.program) else None
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
                _disk().put(alone, stored)
            return Stored.from_bytes(stored).buffers
        return predicted(buffers_of(self.signature, self.binding), self.steps)

    def split(self) -> bool:
        def decide() -> bool:
            (step,) = self.steps
            assert isinstance(step, Vjp)
            return ad.splittable(self.differentiated().function, step, self.options, in_process=True)

        return self._answered("split", decide)

    def widens(self) -> bool:
        def decide() -> bool:
            try:
                self.derived()
            except NotLinear as reason:
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
                _disk().put(key, known)
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
            module = withhold(module, self.program.symbol)
        library.link_bodies(module)
        function = bind(module, self.program.symbol, self.signature, self.binding)
        keep_places(function.module)
        return function

    def primal(self) -> Primal:
        """The same as it runs, and what was found out about its inputs."""
        return _primal.get(self.base_key, lambda: primal(self.bound()))

    def copied(self) -> tuple[str, ...]:
        """The inputs that it has copies of."""
        return self.primal().copied

    def before(self) -> _Job:
        """The same without the last step."""
        return replace(self, steps=self.steps[:-1])

    def canonical(self) -> ArrayFunction:
        """The same in the form that the engine differentiates."""

        def make() -> ArrayFunction:
            flat = canonical(self.derived()) if self.steps else self.primal().canonical
            if self.steps or self.program.launch is not None:
                return flat
            marked = mark_proved_loops(flat)
            return note_rows(marked if "rows" in self.options.without else sum_rows(marked))

        return _canonical.get(self.key, make)

    def differentiated(self) -> General:
        """What the last step is applied to. A derivative's own comparisons are the engine's, and stay."""
        before, step = self.before(), self.steps[-1]
        if before.steps:
            return General(before.canonical(), ())
        masks = step.tangents if isinstance(step, Jvp) else (step.wanted, step.seeded)
        key = digest("general", before.key, repr(masks))
        return _general.get(key, lambda: before.generalised(step))

    def generalised(self, step: Step) -> General:
        """What a first step is applied to."""
        base = name_choices(self.canonical())
        rules = rules_of(base.module)
        found = general(base, step, rules)
        return found if isinstance(step, Jvp) else replace(found, function=keep_choices(found.function, step, rules))

    def comparisons(self) -> tuple[ExactComparison, ...]:
        """The comparisons of the kernel with exact values that this derivative of it depends on."""
        if self.lanes:
            return self.narrow().comparisons()
        key = digest("comparisons", self.key)
        data = _disk().get(key)
        if data is None:
            with working(f"planning {self}"):
                data = shortcut_warnings.to_bytes(self._comparisons())
            _disk().put(key, data)
        return shortcut_warnings.from_bytes(data)

    def _comparisons(self) -> tuple[ExactComparison, ...]:
        first = replace(self, steps=self.steps[:1])
        found = first.differentiated().comparisons
        if len(self.steps) == 1:
            return found
        layouts = [replace(self, steps=self.steps[:n]).layout() for n in range(len(self.steps))]
        wider = Jvp(varied_inputs(self.steps, layouts))
        return later(found, replace(first, steps=(wider,)).differentiated().comparisons)

    def _derive(self) -> ArrayFunction:
        if self.lanes:
            return in_directions(self.narrow().canonical(), self.steps[-1])
        base, step = self.differentiated().function, self.steps[-1]
        if type(step) is Vjp and not self.before().steps:
            self.require_repeatable()
        if not isinstance(step, Jvp):
            base = with_tape_bodies(base)
        result = ad.derive(base, (step,), self.options)
        check_buffers(result.buffers, base.buffers, step)
        library.link_rules(result.module)
        return result

    def require_repeatable(self) -> None:
        """Raises DifferentiationError where this derivative, which runs the kernel again, may find something else than
        the kernel did."""
        if not self._answered("repeatable", lambda: not any(self._hindrances())):
            raise next(self._hindrances())

    def _hindrances(self) -> Iterator[DifferentiationError]:
        base = self.before().canonical()
        return hindrances(base, self.steps[-1], rules_of(base.module))

    def _stored(self) -> Stored:
        data = _disk().get(self.key)
        if data is not None:
            LOG.info("%s is in the disk cache", self)
            return Stored.from_bytes(data)
        if not self.steps and not self.whole and withholds(self.program.ir):
            stored = replace(self, whole=True)._stored()
            _disk().put(self.key, stored.to_bytes())
            return stored
        with working(f"compiling {self}"):
            return self._compiled()

    def _compiled(self) -> Stored:
        # A kernel itself goes through the canonical form too: what is hoisted and refused there is so for every mode.
        function = self.derived() if self.steps else self.canonical()
        if self.options.sanitize:
            function = self._shared(function)[0] if self.steps else function
            function = with_native_bodies(self._checked(function), self.program)
        else:
            function = guard_divisions(with_native_bodies(self._shared(function)[0], self.program))
        stored = compiled(function, self.options)
        _disk().put(self.key, stored.to_bytes())
        return stored

    def _checked(self, function: ArrayFunction) -> ArrayFunction:
        """The kernel with checks, or a derivative behind it. A pullback comes behind a forward sweep that is."""
        if any(isinstance(step, Pullback) for step in self.steps):
            return guard_divisions(function)
        limit = self.options.time_limit
        threads = self.options.threads or 1
        module = program_module(self.program, self.signature, self.binding, threads=threads, as_written=True)
        library.link_bodies(module)
        plain = prepare_calls(with_checked_promises(bind(module, self.program.symbol, self.signature, self.binding)))
        checked = sanitized(plain, 0 if limit is None else max(1, round(1000 * limit)))
        return with_checks(guard_divisions(function), checked) if self.steps else checked

    def sharing(self) -> tuple[str, ...]:
        return self._shared(self.derived() if self.steps else self.canonical())[1]

    def _shared(self, function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
        """The same function, its loops and blocks for several threads where they are independent."""
        return _shared.get(self.key, lambda: self._share(function))

    def _share(self, function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
        launch = self.program.launch
        grid = launch.shape(dict(self.binding.dims)).grid if launch is not None else ()
        extents = [extent for extent in reversed(grid) if extent > 1]
        if launch is None:
            return self._shared_by_marks(function)
        if not extents:
            return function, ()
        if self.before_all().primal().has_state:
            return function, ("on one thread: `__device__` variables pass from block to block",)
        plain = with_regular_loops(function) if self.steps else function
        regular = without_needless_clears(plain)
        shared, verdicts = share_loops(regular, extents)
        gains = shared is not plain or has_guarded_loops(regular.module.functions[regular.symbol])
        return (shared if gains else function), verdicts

    def _shared_by_marks(self, function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
        if not has_marks(function.module):
            return self._in_lockstep(function, with_regular_loops), ()
        regular = without_needless_clears(canonical(function) if self.steps else function)
        shared, verdicts = share_marked_loops(regular)
        together = self._in_lockstep(regular, lambda f: f)
        if together is not regular and (also := share_marked_loops(together))[1] == verdicts:
            return also
        return (function if shared is regular else shared), verdicts

    def _in_lockstep(self, function: ArrayFunction, regular: Callable[[ArrayFunction], ArrayFunction]) -> ArrayFunction:
        """The same function with iterations of loops in lockstep. A derivative, of which `regular` makes one with
        regular loops, is not looked at where the kernel has no loop for that."""
        if self.lanes or "lockstep" in self.options.without:
            return function
        if not self.steps:
            return in_lockstep(function)
        kernel = self.before_all()
        base = kernel.canonical()
        if not _answers.get(digest("lockstep", kernel.key), lambda: in_lockstep(base) is not base):
            return function
        before = regular(function)
        changed = in_lockstep(before)
        return function if changed is before else changed

    def before_all(self) -> _Job:
        """The kernel itself."""
        return replace(self, steps=())


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


def _disk() -> DiskCache:
    return DiskCache.named("objects")


@cache
def environment() -> str:
    """What else decides what the same inputs compile to: this machine, and this package."""
    return digest(host().fingerprint, long_compiler(), vector_library(), own_digest())
