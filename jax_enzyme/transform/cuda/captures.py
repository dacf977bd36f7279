"""Launches that a CUDA graph holds: each is written down with what it is given, and done when the graph is launched.

    before    %r = call ptr @je.record.axpy(i32 %blocks, 1, 1, i32 256, 1, 1, i64 0, i32 %n, double %a, ptr %x)
    after     %r = malloc: the number of this place, %blocks, %n, %a, %x

and `__je_replay(ptr %r)` is a choice among the places that write records, each with its launch of what it reads there;
constants stand in it as they are.
"""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.cuda.objects import passed_structure
from jax_enzyme.transform.rewriting import Change, rewrite

RECORD = "__je_record"
RECORDED = "je.record."
_REPLAY = "__je_replay"
_ALIGN = 16


def write_records(work: Module, device: Module, numbers: int, direct: str) -> bool:
    """Gives records and what launches them again a meaning, in place; whether there are any. The launch of a kernel is
    a function whose name begins with `direct`, and takes so many numbers in front of the kernel's own parameters."""
    calls = [i for f in work.functions.values() for i in f.instructions() if callee_name(i).startswith(RECORDED)]
    sites = {call: _Site.of(work, device, call, number, numbers) for number, call in enumerate(calls)}

    def change_of(instruction: I.Instruction) -> Change | None:
        site = sites.get(instruction)
        return None if site is None else lambda at: site.written(work, at)

    for function in work.functions.values():
        rewrite(function, change_of)
    replay = work.functions.get(_REPLAY)
    if replay is not None:
        _define(work, replay, list(sites.values()), direct)
    work.functions = {n: f for n, f in work.functions.items() if not n.startswith(RECORDED)}
    return replay is not None


@dataclass(frozen=True, eq=False)
class _Site:
    """A place that writes records: where in them its operands lie, None for constants, and the structures that are
    passed by value, which are held whole."""

    number: int
    kernel: str
    operands: tuple[V.Value, ...]
    offsets: tuple[int | None, ...]
    structures: tuple[int | None, ...]
    size: int

    @staticmethod
    def of(work: Module, device: Module, call: I.Instruction, number: int, numbers: int) -> _Site:
        layout = DataLayout(work)
        kernel = callee_name(call).removeprefix(RECORDED)
        parameters = device.functions[kernel].arguments
        structures = [None] * numbers + [passed_structure(device, p) for p in parameters]
        operands, offsets, end = tuple(call.operands[:-1]), list[int | None](), _ALIGN
        for operand, structure in zip(operands, structures, strict=True):
            if isinstance(operand, V.Constant) and structure is None:
                offsets.append(None)
                continue
            offsets.append(end)
            size = layout.alloc_size(operand.type) if structure is None else structure
            end += -(-size // _ALIGN) * _ALIGN
        return _Site(number, kernel, operands, tuple(offsets), tuple(structures), end)

    def written(self, work: Module, at: Builder) -> V.Value:
        """Builds a record."""
        declared = Declarations(work)
        record = declared.memory(at, "malloc", const_int(T.I64, self.size))
        at.store(const_int(T.I32, self.number), record)
        for operand, offset, structure in zip(self.operands, self.offsets, self.structures, strict=True):
            if offset is None:
                continue
            place = at.offset(record, offset)
            if structure is None:
                at.store(operand, place)
            else:
                declared.memory(at, "memcpy", place, operand, const_int(T.I64, structure))
        return record

    def launched(self, work: Module, at: Builder, record: V.Value, direct: str) -> None:
        """Builds the launch of a record."""
        values: list[V.Value] = []
        for operand, offset, structure in zip(self.operands, self.offsets, self.structures, strict=True):
            place = record if offset is None else at.offset(record, offset)
            values.append(
                operand if offset is None else place if structure is not None else at.load(operand.type, place)
            )
        Declarations(work).invoke(at, direct + self.kernel, T.VOID, values, ("nounwind",))


def _define(work: Module, replay: Function, sites: list[_Site], direct: str) -> None:
    entry, end = V.BasicBlock(name="entry"), V.BasicBlock(name="end")
    replay.prefix, replay.blocks = ("internal",), [entry]
    record = replay.arguments[0]
    at = Builder(entry)
    choice = I.Switch(T.VOID, "switch", [at.load(T.I32, record)], targets=[end])
    at.insert(choice)
    for site in sites:
        block = V.BasicBlock(name=f"launch.{site.number}")
        choice.add(const_int(T.I32, site.number), block)
        case = Builder(block)
        site.launched(work, case, record, direct)
        case.br(end)
        replay.blocks.append(block)
    Builder(end).ret()
    replay.blocks.append(end)
