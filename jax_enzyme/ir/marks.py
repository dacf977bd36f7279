"""Marks: what is said about the iterations of a loop, on the branch that closes it.

    br label %header, !llvm.loop !7                        where LLVM's passes run: they keep it
    !7 = distinct !{!7, !8, !9}      !8 = !{!"je.parallel"}      !9 = !{!"je.exclusive"}

    br label %header, !je.loop !3, !je.reversed !4         where the engine copies instructions
    !3 = !{!"je.parallel", !"je.exclusive"}      !4 = !{!"je.parallel", !"je.exclusive", !"je.reversed"}

The program is serial, and nothing but the last pass looks at marks: a mark that gets lost costs speed alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import islice

from jax_enzyme.ir.debug import NOTED, add_loop, add_node, is_set_apart, location, note_places, resolve, trace
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.lexer import escape
from jax_enzyme.ir.metadata import MDNode, MDRef, MDString, MDValue
from jax_enzyme.ir.module import GlobalVariable, Module, callee_name
from jax_enzyme.ir.nodes import of_kind
from jax_enzyme.ir.values import Argument, BasicBlock, Value

_LLVM = "llvm.loop"
_GROUP = "llvm.access.group"
_PLACE = "je.at"
LOOP = "je.loop"
"""Marks of a loop, as metadata that derivatives take over."""
REVERSED = "je.reversed"
"""Marks that the reverse of a loop has."""
ROW = "je.row"
ROW_BACK = "je.row.back"
"""Say that a short loop, and that its reverse, is a row of numbers, which becomes vectors (`codegen.short_rows`)."""
LOCKSTEP = "je.lockstep"
LOCKSTEP_BACK = "je.lockstep.back"
LOCKSTEP_OPEN = "je.lockstep.open"
"""Say that iterations of a loop run in lockstep, and that its reverse may: then what it keeps lies side by side for
them (`ad.plan.tape`); or that this waits for derivatives, in which sums of inner loops have no order."""
EARLY = '"je.early"'
"""Says of a function that what arms of branches load is loaded in front of these (`ad.emit.early_loads`)."""
MASK = "je.mask"
"""Says of a select that it only keeps an infinite partial away from a cotangent of 0; else it is its last operand."""
TOLD = "je.told"
"""Says of an access of a number that it is looked at as the program runs whether such a number is there."""
COMMON = "je.common"
"""Says of memory that it is made outside of parallel regions, so that it is no thread's own."""
SLOTS = "je.slots"
"""Says of a tape that no two iterations of a marked loop, other than a reversed one, write to one place of it."""
_OWN = '"je.own"'
"""Says of a tape that is a parameter that a thread's own memory lies in it."""


class Mark(Enum):
    """`PARALLEL`: iterations may run in any order, and what they add up may be added in any. `EXCLUSIVE`: what one
    iteration writes of memory not its thread's own no other one accesses, neither plainly nor atomically. Of a
    `REVERSED` loop both hold but for additions, which several iterations may make to one place. The loop of
    `TASKS` is a `taskloop`'s, or creates tasks: what each of them has of its own is one place in the serial program."""

    PARALLEL = "je.parallel"
    EXCLUSIVE = "je.exclusive"
    REVERSED = "je.reversed"
    TASKS = "je.tasks"


Marks = frozenset[Mark]
_WORDS = frozenset(m.value for m in Mark)


def mark(module: Module, latch: Instruction, marks: Marks) -> None:
    """Marks the loop that a branch closes, in place, for LLVM's passes. They may make another branch of it, and so the
    loop's place is among the marks."""
    known = next((resolve(module, node) for kind, node in latch.metadata if kind == _LLVM), None)
    held: list[MDValue] = [] if known is None else known.operands[1:]
    place = location(module, latch)
    said = [[word] for word in _words(marks)] + ([] if place is None else [[MDString(_PLACE), MDString(escape(place))]])
    loop = add_loop(module, held, (MDNode(operands=[*words]) for words in said))
    latch.metadata = [*((k, n) for k, n in latch.metadata if k != _LLVM), (_LLVM, loop)]


def unmark(module: Module, latch: Instruction) -> None:
    """Takes back what `mark` said, in place."""
    known = next((resolve(module, node) for kind, node in latch.metadata if kind == _LLVM), None)
    if known is None:
        return
    ours = {_PLACE, *_WORDS}
    held = [o for o in known.operands[1:] if not _texts(_operands(module, o)[:1]) & ours]
    rest = [(k, n) for k, n in latch.metadata if k != _LLVM]
    latch.metadata = [*rest, (_LLVM, add_loop(module, held))] if held else rest


def separate(module: Module, latch: Instruction, accesses: Iterable[Instruction]) -> None:
    """Tells LLVM's passes that none of these accesses meets one of them of another iteration of the loop that a branch
    closes, in place. They need no proof of their own then, found only where it is known how often a loop runs.

    https://llvm.org/docs/LangRef.html#llvm-loop-parallel-accesses-metadata
    """
    group = add_node(module, MDNode(distinct=True))
    loop = add_loop(module, (), [MDNode(operands=[MDString("llvm.loop.parallel_accesses"), group])])
    latch.metadata = [*((k, n) for k, n in latch.metadata if k != _LLVM), (_LLVM, loop)]
    for access in accesses:
        access.metadata = [*((k, n) for k, n in access.metadata if k != _GROUP), (_GROUP, group)]


def is_told(access: Instruction) -> bool:
    """Whether it is looked at as the program runs what kind of number is accessed."""
    return any(kind == TOLD for kind, _ in access.metadata)


def is_common(memory: object) -> bool:
    """Is memory, by what makes it, common to all threads? What the caller gives is."""
    if isinstance(memory, Argument):
        return _OWN not in memory.attributes
    return isinstance(memory, Instruction | GlobalVariable) and any(kind == COMMON for kind, _ in memory.metadata)


def has_slots(memory: object) -> bool:
    """Is memory a tape of which iterations write slots of their own?"""
    if isinstance(memory, Argument):
        return f'"{SLOTS}"' in memory.attributes
    return isinstance(memory, Instruction) and any(kind == SLOTS for kind, _ in memory.metadata)


def mark_tape(memory: Value, common: bool, slots: bool) -> None:
    """Says of a tape, in place, whether it is no thread's own, and whether iterations write slots of their own."""
    if isinstance(memory, Argument):
        memory.attributes = (*memory.attributes, *([] if common else [_OWN]), *([f'"{SLOTS}"'] if slots else []))
        return
    if common:
        mark_common(memory)
    if slots and isinstance(memory, Instruction):
        memory.metadata = [*memory.metadata, (SLOTS, MDNode())]


def mark_common(memory: object) -> None:
    """Says so of memory, in place."""
    if isinstance(memory, Instruction | GlobalVariable):
        memory.metadata = [*memory.metadata, (COMMON, MDNode())]


def keep_common(before: Module, after: Module) -> None:
    """Says so, in place, of allocations that LLVM's passes made of others, as a `calloc` of a `malloc` and a `memset`
    behind it: of all of them where all others are, or else by their places in the source, which shadows do not have."""
    made = {say: {_origin(before, i) for i in _made(before) if is_common(i) is say} for say in (True, False)}
    common = made[True] - made[False] - ({None} if made[False] else set())
    for call in _made(after) if common else ():
        if not is_common(call) and _origin(after, call) in common:
            mark_common(call)


def _origin(module: Module, call: Instruction) -> tuple[str, bool] | None:
    """Where a call was written, wherever that was inlined, and whether it is one of a copied function."""
    return next(((place, is_set_apart(module, call)) for place in trace(module, call)), None)


def _made(module: Module) -> Iterable[Instruction]:
    return (i for f in module.functions.values() for i in f.instructions() if callee_name(i) in ("malloc", "calloc"))


def marks_of(module: Module, latch: Instruction) -> Marks:
    """The marks of the loop that a branch closes, in either form."""
    found: set[str] = set()
    for kind, value in latch.metadata:
        node = resolve(module, value) if kind in (_LLVM, LOOP) else None
        if node is not None and kind == LOOP:
            found |= _texts(node.operands)
        elif node is not None:
            for operand in node.operands[1:]:
                found |= _texts(_operands(module, operand))
    return frozenset(m for m in Mark if m.value in found)


def has_marks(module: Module) -> bool:
    """Whether any loop of a module has marks."""
    operands = (operand for _, node in of_kind(module.metadata, "") for operand in node.operands)
    return any(isinstance(operand, MDString) and operand.text in _WORDS for operand in operands)


def note_marks(module: Module) -> None:
    """Gives marked loops the form of marks that derivatives take over, in place."""
    if not has_marks(module):
        return
    for function in module.functions.values():
        for block in function.blocks:
            latch = block.instructions[-1]
            marks = marks_of(module, latch)
            if marks and all(kind != LOOP for kind, _ in latch.metadata):
                back = {*marks, Mark.REVERSED} - ({Mark.EXCLUSIVE} if Mark.REVERSED in marks else set[Mark]())
                added = ((LOOP, _node(module, marks)), (REVERSED, _node(module, frozenset(back))))
                latch.metadata = [*latch.metadata, *added]
                if all(kind not in ("dbg", NOTED) for kind, _ in latch.metadata):
                    latch.metadata += _place(module, latch) or _place_within(block)
                note_places(module, [latch])


def _place(module: Module, latch: Instruction) -> list[tuple[str, MDValue]]:
    """The place that is among the marks of the loop that a branch closes, as a note."""
    for node in (resolve(module, node) for kind, node in latch.metadata if kind == _LLVM):
        for held in (resolve(module, operand) for operand in node.operands[1:]) if node is not None else ():
            if held is not None and _PLACE in _texts(held.operands[:1]):
                return [(NOTED, add_node(module, MDNode(operands=[held.operands[1]])))]
    return []


def _place_within(block: BasicBlock) -> list[tuple[str, MDValue]]:
    known = (n for i in reversed(block.instructions) for k, n in i.metadata if k == "dbg")
    return [("dbg", node) for node in islice(known, 1)]


def show_marks(module: Module) -> None:
    """Gives marked loops the form of marks that LLVM's passes keep, in place."""
    if not has_marks(module):
        return
    for function in module.functions.values():
        for block in function.blocks:
            latch = block.instructions[-1]
            if any(kind == LOOP for kind, _ in latch.metadata):
                marks = marks_of(module, latch)
                latch.metadata = [(k, n) for k, n in latch.metadata if k not in (LOOP, REVERSED)]
                if marks_of(module, latch) != marks:
                    mark(module, latch, marks)


def of_reverse(latch: Instruction) -> list[tuple[str, MDValue]]:
    """What the reverse of the loop that a branch closes has as metadata: its marks, and its place."""
    is_marked = any(kind == REVERSED for kind, _ in latch.metadata)
    kinds = {REVERSED: LOOP, NOTED: NOTED, ROW_BACK: ROW} if is_marked else {ROW_BACK: ROW}
    return [(kinds[kind], node) for kind, node in latch.metadata if kind in kinds]


def _operands(module: Module, value: MDValue) -> list[MDValue]:
    held = resolve(module, value)
    return [] if held is None else list(held.operands)


def _node(module: Module, marks: Marks) -> MDRef:
    words = _words(marks)
    for number, node in of_kind(module.metadata, ""):
        if node.operands == words and not node.distinct:
            return MDRef(number)
    return add_node(module, MDNode(operands=words))


def _words(marks: Marks) -> list[MDValue]:
    return [MDString(word) for word in sorted(m.value for m in marks)]


def _texts(operands: Iterable[MDValue]) -> set[str]:
    return {o.text for o in operands if isinstance(o, MDString)}
