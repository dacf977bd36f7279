"""What there is to say about the derivatives of a CUDA kernel on a GPU, for people: a part of `codegen.inspection`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from jax_enzyme.ad.device.report import reverse_report
from jax_enzyme.ad.report import ReverseReport
from jax_enzyme.codegen.gpu.architecture import target
from jax_enzyme.codegen.gpu.code_object import Resources as AmdResources
from jax_enzyme.codegen.gpu.code_object import inspected
from jax_enzyme.codegen.gpu.derived import Job
from jax_enzyme.codegen.gpu.ptxas import Resources, assemble, occupancy
from jax_enzyme.codegen.gpu.traffic import Traffic, traffic
from jax_enzyme.errors import DifferentiationError, LoweringError
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir.arrays import Augmented, Derivation, Jvp, Pullback, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, Signature


@dataclass(frozen=True)
class GpuReport:
    """Reverse mode of what one thread does; `refusal` is the text where it is refused. `counted`: a kernel that counts
    the iterations of loops runs first."""

    reverse: ReverseReport | None
    refusal: str | None
    counted: bool
    _steps: dict[str, Derivation] = field(compare=False)
    _job: Job = field(compare=False)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that there are."""
        return tuple(self._steps)

    @property
    def threads(self) -> int:
        """How many threads a launch has."""
        shape = self._job.layout().shape
        return prod(shape.grid) * shape.threads

    @property
    def tape_bytes(self) -> int | None:
        """Bytes that the tape of a gradient takes for this launch, of all threads together; without those of loops of
        unknown length, which only a run counts. None where reverse mode is refused."""
        found = [name for name in ("augmented", "vjp") if name in self._steps]
        return self._of(found[0]).layout().tape_bytes if found else None

    def ptx(self, name: str, arch: str = "sm_90") -> str:
        """The PTX of one function; for GPUs of AMD's (`gfx90a`) their assembly."""
        return self._of(name).ptx(arch, 0, counts=False)

    def code_object(self, name: str, arch: str) -> bytes:
        """The linked code object of one function for a GPU of AMD's (`gfx90a`, `gfx942`)."""
        return self._of(name).code_object(arch, 0, counts=False)

    def resources(self, arch: str = "sm_90") -> dict[str, Resources | AmdResources]:
        """Registers, spills and shared memory of every function: by NVIDIA's assembler, which has to be installed, or
        of code objects for GPUs of AMD's. LoweringError where there is none."""
        return {name: self._resources(name, arch) for name in self._steps}

    def occupancy(self, arch: str = "sm_90") -> dict[str, float]:
        """The part of a multiprocessor's warps that is busy, of every function, by registers and shared memory. For
        NVIDIA's devices, where its assembler is installed."""
        found: dict[str, float] = {}
        for name in self._steps:
            shape = self._of(name).layout().shape
            found[name] = occupancy(assemble(self.ptx(name, arch), arch)[0], arch, shape.threads, shape.shared)
        return found

    def traffic(self) -> dict[str, Traffic]:
        """What a launch of every function moves, by a model, not by measuring (`codegen.gpu.traffic`)."""
        jobs = {name: self._of(name) for name in self._steps}
        return {n: traffic(job.launched().function, fast_math=job.options.fast_math) for n, job in jobs.items()}

    def _resources(self, name: str, arch: str) -> Resources | AmdResources:
        if target(arch).vendor == "NVIDIA":
            return assemble(self.ptx(name, arch), arch)[0]
        job = self._of(name)
        return inspected(job.launched().function, arch, fast_math=job.options.fast_math).kernels[0]

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """Titles and rows of a report."""
        yield "on a GPU", [*self._rows(), "registers: report.gpu.resources(), .occupancy(), PTX: .ptx(name)"]
        yield "traffic on a GPU, by a model", self._moved()
        if self.reverse is not None:
            sums = [f"{a.memory}: {a.way} sums, {a.reads} at {a.place}: {a.why}" for a in self.reverse.accumulations]
            yield "sums on a GPU", sums or ["none"]

    def _rows(self) -> Iterator[str]:
        if self.reverse is None:
            yield "reverse: refused"
            yield from (f"  {line}" for line in (self.refusal or "").splitlines())
            return
        kept = f"tape {self.reverse.tape_bytes} bytes per thread, {self.tape_bytes} in all"
        if self.counted:
            yield f"reverse: one kernel that runs the forward sweep inside, {kept}, and more for each iteration of"
            yield "  loops of unknown length, which another kernel counts first"
        elif "vjp" in self._steps:
            yield f"reverse: one kernel that runs the forward sweep again, {kept}: that costs less than a tape"
        else:
            yield f"reverse: two kernels, {kept}"

    def _moved(self) -> list[str]:
        try:
            return [f"{name}: {moved}" for name, moved in self.traffic().items()]
        except LoweringError as error:
            return [f"unknown: {error.args[0].splitlines()[0]}"]

    def _of(self, name: str) -> Job:
        if name not in self._steps:
            raise KeyError(f"there is no function {name!r}: {', '.join(self._steps)}")
        job = self._job
        return Job(job.program, job.signature, job.binding, self._steps[name], job.options)


def gpu_report(program: Program, signature: Signature, binding: Binding, options: Options, step: Vjp) -> GpuReport:
    """The report on a kernel that has a launch, and one reverse step of it."""
    job = Job(program, signature, binding, (), options)
    steps: dict[str, Derivation] = {"primal": ()}
    reverse, refusal, counted = None, None, False
    try:
        Job(program, signature, binding, (Jvp(step.wanted),), options).launched()
        steps["jvp"] = (Jvp(step.wanted),)
    except DifferentiationError:
        pass  # reverse mode says why
    try:
        whole = Job(program, signature, binding, (step,), options)
        masks = (step.wanted, step.seeded)
        made = {"augmented": Augmented(*masks), "pullback": Pullback(*masks)} if whole.split() else {"vjp": step}
        reverse = reverse_report(whole.differentiated()[0].function, next(iter(made.values())))
        counted = reverse.arena
        for name, each in made.items():
            Job(program, signature, binding, (each,), options).launched()
            steps[name] = (each,)
    except DifferentiationError as error:
        reverse, refusal = None, str(error)
    return GpuReport(reverse, refusal, counted, steps, job)
