"""What there is to say about a kernel and its derivatives, for people: `kernel.inspect(...)` and `jax-enzyme explain`.

The engine runs for what is asked for, and compiles nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from jax_enzyme.ad.plan.choices import Choices
from jax_enzyme.ad.report import NOWHERE, LoopFact, ReverseReport, line_of, reverse_report
from jax_enzyme.ad.shortcuts import ExactComparison, General
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.objects import called_routine
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.gpu.inspection import GpuReport, gpu_report
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.display import pages, pictures
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Derivation, Jvp, Pullback, Step, Vjp
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Module, declared_name
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.rules.table import Rules
from jax_enzyme.rules.user import rules_of, withheld
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature.formals import shared_by_threads

_ROWS = 8
_WIDTH = 118


@dataclass(frozen=True)
class LibraryCall:
    """A function that the kernel calls, and that its source does not define or a rule is for; `verdict` says how it is
    differentiated."""

    name: str
    place: str
    verdict: str


@dataclass(frozen=True)
class _Job:
    program: Program
    signature: Signature
    binding: Binding
    options: Options

    def function(self, steps: Derivation) -> ArrayFunction:
        if not steps:
            return derived.regular(self.program, self.signature, self.binding, self.options)
        return derived.derived(self.program, self.signature, self.binding, steps, self.options)

    def differentiated(self, step: Step) -> General:
        return derived.differentiated(self.program, self.signature, self.binding, step, self.options)

    def splits(self, step: Vjp) -> bool:
        return derived.split(self.program, self.signature, self.binding, step, self.options)

    def first_run(self, steps: Derivation) -> ArrayFunction:
        return derived.first_run(self.program, self.signature, self.binding, steps, self.options)

    def sharing(self, steps: Derivation) -> tuple[str, ...]:
        return derived.sharing(self.program, self.signature, self.binding, steps, self.options)


@dataclass(frozen=True)
class _Reversed:
    """Reverse mode: the functions that there are, and the report with what the pullback reads, or the refusal."""

    steps: dict[str, Derivation]
    report: ReverseReport | None
    refusal: str | None = None
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Report:
    """What the engine makes of a kernel for given shapes. `print` it, or leave it at the end of a notebook cell. Each
    part is made when it is asked for.

    `forward` and `refusal` hold the text of the refusal where forward or reverse mode is refused, else None. `reverse`
    has the activity and the plan of reverse mode, `reads` what its pullback reads besides the tape. `comparisons` are
    those of varying numbers with exact values that decide about varying numbers: `proved` ones are shortcuts, whose
    general side is differentiated; the others may hide a derivative. `copied` names the inputs that the kernel
    overwrites, and has copies of. `functions` names the functions that there are; `ir(name)` is the IR of one. All that
    is about the CPU. Of CUDA kernels, `blocks` says for each function whether its blocks run on several threads of a
    CPU, and if not, why; `gpu` is about GPUs. `loops` says the same of every loop that a directive of OpenMP shares
    out, or that is proved independent.
    """

    name: str
    source: str
    constants: tuple[tuple[str, int], ...]
    buffers: tuple[Buffer, ...]
    wanted: tuple[bool, ...]
    _job: _Job = field(compare=False)

    @cached_property
    def calls(self) -> tuple[LibraryCall, ...]:
        return tuple(_calls(self._job.function(()).module, self._rules))

    @cached_property
    def comparisons(self) -> tuple[ExactComparison, ...]:
        found = {c for step in (Jvp(self.wanted), self._vjp) for c in self._job.differentiated(step).comparisons}
        return tuple(sorted(found, key=lambda c: (c.place or "", c.proved)))

    @cached_property
    def copied(self) -> tuple[str, ...]:
        return derived.copied_inputs(self._job.program, self._job.signature, self._job.binding, self._job.options)

    @cached_property
    def forward(self) -> str | None:
        try:
            self._job.function((Jvp(self.wanted),))
        except DifferentiationError as error:
            return str(error)
        return None

    @property
    def reverse(self) -> ReverseReport | None:
        return self._reversed.report

    @property
    def refusal(self) -> str | None:
        return self._reversed.refusal

    @property
    def reads(self) -> tuple[str, ...]:
        return self._reversed.reads

    @property
    def blocks(self) -> tuple[tuple[str, str], ...]:
        return () if self._job.program.launch is None else self._shared

    @property
    def loops(self) -> tuple[tuple[str, str], ...]:
        return self._shared if self._job.program.launch is None else ()

    @cached_property
    def gpu(self) -> GpuReport | None:
        job = self._job
        if job.program.launch is None or shared_by_threads(job.signature.formals) is not None:
            return None
        return gpu_report(job.program, job.signature, job.binding, job.options, self._vjp)

    @property
    def _rules(self) -> Rules:
        return rules_of(self._job.function(()).module)

    @cached_property
    def _vjp(self) -> Vjp:
        return Vjp(self.wanted, tuple(b.is_floating and b.is_result for b in self.buffers))

    @cached_property
    def _reversed(self) -> _Reversed:
        step, base = self._vjp, self._job.differentiated(self._vjp).function
        try:
            report = reverse_report(base, step, self._rules, Choices.of(self._job.options))
            if not self._job.splits(step):
                self._job.function((step,))
                return _Reversed({"vjp": (step,)}, report)
            pullback: Derivation = (Pullback(step.wanted, step.seeded),)
            reads = tuple(b.name for b in self._job.function(pullback).buffers if b.role in ("initial", "final"))
        except DifferentiationError as error:
            return _Reversed({}, None, str(error))
        return _Reversed(
            {"augmented": (Augmented(step.wanted, step.seeded),), "pullback": pullback}, report, reads=reads
        )

    @cached_property
    def _steps(self) -> dict[str, Derivation]:
        forward: dict[str, Derivation] = {"jvp": (Jvp(self.wanted),)} if self.forward is None else {}
        return {"primal": (), **forward, **self._reversed.steps}

    @cached_property
    def _shared(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, verdict) for name, s in self._steps.items() for verdict in self._job.sharing(s))

    @property
    def functions(self) -> tuple[str, ...]:
        """`primal`, then `jvp`, then `augmented` and `pullback`, or `vjp` where the derivative does not split."""
        return tuple(self._steps)

    def ir(self, name: str, *, optimised: bool = False) -> str:
        """The LLVM IR of one function: as the engine made it, or, `optimised`, as it is compiled for this machine."""
        function = self._function(name)
        if not optimised:
            return to_text(function.module)
        function = self._job.first_run(self._steps[name])
        return optimised_text(entry_module(function), self._job.options, is_derivative=function.is_derivative)

    def _function(self, name: str) -> ArrayFunction:
        if name not in self._steps:
            raise KeyError(f"there is no function {name!r}: {', '.join(self._steps)}")
        return self._job.function(self._steps[name])

    def __repr__(self) -> str:
        return f"Report on {self.name} ({len(self._steps)} functions)"

    def __str__(self) -> str:
        lines = [f"kernel {self.name}, {self.source}" + "".join(f", {n} = {v}" for n, v in self.constants)]
        for title, rows in self._sections():
            lines.append(title)
            lines += [f"  {_cut(self._shortened(row))}" for row in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = ((title, "\n".join(map(self._shortened, rows))) for title, rows in self._sections())
        parts = [pages.heading(str(self).partition("\n")[0]), pages.table(rows)]
        for path, notes in self._notes().items():
            try:
                lines = Path(path).read_text("utf-8", "replace").splitlines()
            except OSError:
                continue  # text that has no file, or a file that is gone: the tables above have the places
            parts += [pages.heading(self._shortened(path)), pages.listing(lines, notes)]
        parts += [pages.folded(f"LLVM IR of {name}", self.ir(name)) for name in self._steps]
        return "\n".join(parts)

    def control_flow(self, name: str = "primal") -> pictures.Picture:
        """A picture of the blocks of one function, in SVG. Raises KeyError where there is no such function."""
        function = self._function(name)
        return pictures.control_flow(function.module, function.module.functions[function.symbol])

    def tape(self) -> pictures.Picture:
        """A picture of the tape's bytes by source line, in SVG."""
        by_line = self.reverse.tape_by_line if self.reverse is not None else ()
        return pictures.bars([(self._shortened(place), n, _bytes(n)) for place, n in by_line])

    def _notes(self) -> dict[str, dict[int, list[str]]]:
        """What reverse mode says about the lines of each source file."""
        found: dict[str, dict[int, list[str]]] = {}
        if self.reverse is None:
            return found
        for place, note in _line_notes(self.reverse):
            path, _, line = line_of(place).rpartition(":")
            if path and line.isdecimal():
                notes = found.setdefault(path, {}).setdefault(int(line), [])
                if note not in notes:
                    notes.append(note)
        return found

    def _shortened(self, row: str) -> str:
        """Without the folder of the source, which the first line names."""
        folder = os.path.dirname(self.source)
        return row.replace(f"{folder}{os.sep}", "") if folder else row

    # -- sections

    def _sections(self) -> Iterator[tuple[str, list[str]]]:
        yield "buffers", list(self._buffer_rows())
        yield "library calls", _few([f"{c.name}: {c.verdict} ({c.place})" for c in self.calls]) or ["none"]
        if self.comparisons:
            yield "comparisons with exact values", _few(map(_comparison, self.comparisons))
        yield "derivatives", list(self._derivative_rows())
        if self.blocks:
            yield "blocks on the CPU", [f"{name}: {verdict}" for name, verdict in self.blocks]
        if self.loops:
            yield "parallel loops", [f"{name}: {verdict}" for name, verdict in self.loops]
        if self.reverse is not None:
            yield from _reverse_sections(self.reverse)
        if self.gpu is not None:
            yield from self.gpu.sections()
        yield (
            "functions",
            [f"{', '.join(self.functions)}: report.ir(name) or report.ir(name, optimised=True)"],
        )

    def _buffer_rows(self) -> Iterator[str]:
        active = {m.name for m in self.reverse.memory if m.active and m.kind == "buffer"} if self.reverse else set()
        for buffer, wanted in zip(self.buffers, self.wanted, strict=True):
            note = ", overwritten: the kernel gets a copy" if buffer.name in self.copied else ""
            note += ", active" if buffer.name in active else ""
            note += ", its cotangent is asked for" if wanted else ""
            shape = ",".join(map(str, buffer.shape))
            yield f"{buffer.io:7} {buffer.name}: {buffer.dtype}[{shape}] ({buffer.nbytes} bytes){note}"

    def _derivative_rows(self) -> Iterator[str]:
        yield from _verdict_rows("forward", "one function", self.forward)
        if self.reverse is None:
            yield from _verdict_rows("reverse", "", self.refusal)
            return
        kept = f"tape {_bytes(self.reverse.tape_bytes)}"
        if self.reverse.splits:
            reads = f"; the pullback also reads {', '.join(self.reads)}" if self.reads else ""
            yield f"reverse: two functions, {kept}{reads}"
        else:
            kept += ", and more in an arena as it goes" if self.reverse.arena else ""
            two = f"two functions, {kept}, which the process keeps between them"
            one = f"one function that runs the forward sweep inside, {kept}"
            yield f"reverse: {two if 'pullback' in self._steps else one}"
        yield f"activity: {self.reverse.active_values} of {self.reverse.all_values} instructions carry a derivative"


def inspect(
    program: Program,
    signature: Signature,
    binding: Binding,
    options: Options | None = None,
    wrt: Sequence[str] | None = None,
) -> Report:
    """The report on a specialised kernel; `wrt` names the inputs whose cotangents are asked for (None: all)."""
    job = _Job(program, signature, binding, options or Options())
    buffers = job.function(()).buffers
    wanted = tuple(b.is_floating and b.is_input and (wrt is None or b.name in wrt) for b in buffers)
    constants = tuple(sorted(binding.constants.items()))
    return Report(program.symbol, program.source_name, constants, buffers, wanted, job)


def _calls(module: Module, rules: Rules) -> Iterator[LibraryCall]:
    """One per library function, with the first place of a call."""
    seen: set[str] = set()
    ruled = withheld(module)
    for function in module.functions.values():
        for call in function.instructions():
            name = declared_name(call)
            if name and name not in seen:
                seen.add(name)
                if isinstance(call, I.CallBase) and effect(name) is not Effect.IGNORED:
                    rule = rule_of(call, rules)
                    verdict = _verdict(call, name) if rule is None else rule.kind.value
                    if rule is not None and rule.refusal is not None:
                        verdict = rule.refusal.cause
                    if name in ruled:
                        verdict = "a rule, which wins over its source"
                    yield LibraryCall(name, location(module, call) or NOWHERE, verdict)


def _verdict(call: I.CallBase, name: str) -> str:
    found = effect(name)
    if found is None:
        return "no rule" if called_routine(call) is None else "a routine's rule"
    return found.name.lower().replace("_", " ")


def _reverse_sections(reverse: ReverseReport) -> Iterator[tuple[str, list[str]]]:
    yield "loops", _few([_loop(x) for x in reverse.loops]) or ["none"]
    local = [m for m in reverse.memory if m.kind != "buffer"]
    if local:
        rows = [f"{m.kind} {m.name} ({m.place}): {'active' if m.active else 'inactive'}" for m in local]
        yield "memory of its own", _few(rows)
    yield "tape by source line", _few([f"{_bytes(n):>12}  {place}" for place, n in reverse.tape_by_line]) or ["nothing"]
    if reverse.kept:
        most = sorted(reverse.kept, key=lambda k: -k.nbytes)
        rows: list[str] = []
        for kept in most:
            shape = "".join(f"[{count}]" for count in kept.counts)
            often = " per iteration" if kept.per_iteration else ""
            rows.append(f"{_bytes(kept.nbytes)}{often}  {kept.what}, {kept.type}{shape} ({kept.place}): {kept.why}")
        yield "on the tape", _few(rows)
    again = [f"{r.place}: {r.recipe}: {_summary(r.what)}" for r in reverse.recomputed]
    yield "not on the tape", _few(again) or ["nothing more is read"]
    sums = [f"{a.memory}: {a.way} sums, {a.reads} at {a.place}" for a in reverse.accumulations]
    yield "accumulations", _few(sums) or ["none"]


def _line_notes(reverse: ReverseReport) -> Iterator[tuple[str, str]]:
    for loop in reverse.loops:
        yield loop.place, f"loop, iterations {loop.trips}"
    for place, nbytes in reverse.tape_by_line:
        yield place, f"tape {_bytes(nbytes)}"
    for again in reverse.recomputed:
        yield again.place, f"{again.recipe}: {_summary(again.what)}"
    for sums in reverse.accumulations:
        yield sums.place, f"adds to the cotangent of {sums.memory}: {sums.way}"


def _comparison(comparison: ExactComparison) -> str:
    proved = "a shortcut: its general side is differentiated"
    verdict = proved if comparison.proved else "not proved to be a shortcut: may hide a derivative"
    return f"{comparison.place or NOWHERE}: {verdict}"


def _loop(loop: LoopFact) -> str:
    note = ", nothing in it to reverse" if loop.inert else ""
    return f"{'  ' * (loop.depth - 1)}loop at {line_of(loop.place)}: iterations {loop.trips}{note}"


def _summary(what: tuple[str, ...]) -> str:
    counted = [f"{what.count(w)} x {w}" if what.count(w) > 1 else w for w in dict.fromkeys(what)]
    return ", ".join(counted)


def _verdict_rows(mode: str, good: str, refusal: str | None) -> Iterator[str]:
    if refusal is None:
        yield f"{mode}: {good}"
    else:
        yield f"{mode}: refused"
        yield from (f"  {line}" for line in refusal.splitlines())


def _few(rows: Iterable[str]) -> list[str]:
    every = list(rows)
    return every if len(every) <= _ROWS + 1 else [*every[:_ROWS], f"... and {len(every) - _ROWS} more"]


def _bytes(count: int) -> str:
    return f"{count} bytes" if count < 10_000 else f"{count / 1000:.1f} kB" if count < 1e7 else f"{count / 1e6:.1f} MB"


def _cut(row: str) -> str:
    return row if len(row) <= _WIDTH else f"{row[: _WIDTH - 3]}..."
