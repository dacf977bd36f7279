"""Sums over lanes of a warp that share a place, several at once.

    reverse sweep    %t += sum of %x over groups of lanes    ->    one addition to memory for each group

    bits      lanes whose numbers differ in these bits alone are a group: all lanes of a warp (31), or those of a row
              (`tile[threadIdx.y][k]` in blocks of 16 x 16: 15)

One number takes a butterfly: a shuffle for each bit. Of several, the two halves of a group exchange halves: each lane
goes on with half as many numbers, so that four sums over a warp take 6 shuffles and not 20, and then four lanes add to
memory at once.

    lane 0: a b c d    lane 16: a b c d         lane 0: a b (+ those of lane 16)    lane 16: c d (+ those of lane 0)

The sweep says what is to be added where (`note`); when it is complete, what one block of code adds is put together
where nothing comes between that reads such memory or meets other threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from jax_enzyme.ad.device.shuffles import warp_helper
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import is_memory_free
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import SUM_FLAGS, Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, ConstantExpr, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.canonical import is_meeting, optimised
from jax_enzyme.transform.device.registers import WARP_ADD, WARP_WORDS, lane_number
from jax_enzyme.transform.loop_hints import ask

_BITS = (16, 8, 4, 2, 1)
_NOTE = f"{WARP_ADD}note."
_MOST = 16
"""So many sums are made at once at most: all of them are in registers."""
_LONGEST = 256
"""Instructions of the loop that results from unrolling one for that."""
_ADD = """
define internal void @je.warp.add.one.KIND(ptr %at, TYPE %sum, i1 %mine) nounwind alwaysinline {
entry:
  br i1 %mine, label %add, label %done

add:
  %old = atomicrmw fadd ptr %at, TYPE %sum monotonic
  br label %done

done:
  ret void
}
"""

_Term = tuple[Value, Value]
"""An address, and what is added there."""
_Waiting = dict[tuple[T.Type, int, int], list[_Term]]


def lane_bits(threads: int) -> int:
    """The bits of a lane's number in a block of so many threads, where every warp has lanes of all numbers; else 0."""
    if threads % WARP_SIZE == 0:
        return WARP_SIZE - 1
    return threads - 1 if threads < WARP_SIZE and threads & (threads - 1) == 0 else 0


def note(module: Module, builder: Builder, at: Value, part: Value, bits: int, threads: int) -> None:
    """Says that each group of lanes adds its sum of a part to memory. All lanes of the warp have to come by, in a block
    of so many threads."""
    mask = (1 << min(threads, WARP_SIZE)) - 1
    numbers = [const_int(T.I32, bits), const_int(T.I32, -1 if threads >= WARP_SIZE else mask)]
    name = f"{_NOTE}{_kind(part.type)}"
    Declarations(module).invoke(builder, name, T.VOID, [at, part, *numbers], WARP_WORDS, ("convergent",))


def carried_out(function: ArrayFunction, base: Module) -> ArrayFunction:
    """A derivative of what is in `base` in which the sums that its sweep has noted are made. Loops of fixed length are
    unrolled for that, so that more sums are made at once."""
    if not any(name.startswith(_NOTE) for name in function.module.functions):
        return function
    module = clone(function.module)
    mark_for_inlining(module, [function.symbol])
    module = optimised(module)
    if ask_innermost(module, module.functions[function.symbol], _sums_at_a_time):
        module = optimised(module, unroll=True)
    target = module.functions[function.symbol]
    own = zip(target.arguments, function.buffers, strict=True)
    unadded: list[Value] = [a for a, b in own if b.role != "shadow" and (b.role != "tape" or b.of < 0)]
    _carry_out(module, target, unadded + [g for g in module.globals.values() if g.name in base.globals])
    return replace(function, module=module)


def ask_innermost(module: Module, function: Function, times: Callable[[Loop, int], int]) -> bool:
    """Asks, in place, to unroll innermost loops of constant length: `times` says of one that repeats so often how many
    iterations at a time, 1 where it stays. Whether there are any."""
    recurrences = Recurrences.of(function, module)
    found = False
    for loop in recurrences.loops:
        repeats = recurrences.repeats(loop) if not loop.children and len(loop.latches) == 1 else None
        count = 1 if repeats is None else times(loop, repeats)
        if count > 1:
            ask(module, loop.latches[0].terminator, count)
            found = True
    return found


def _sums_at_a_time(loop: Loop, repeats: int) -> int:
    body = [i for block in loop.blocks for i in block.instructions]
    kinds = Counter((i.operands[1].type, int_value(i.operands[2])) for i in body if _is_note(i))
    most = min(_MOST // max(kinds.values()), _LONGEST // len(body)) if kinds else 0
    return next((1 << n for n in reversed(range(most.bit_length())) if (repeats + 1) % (1 << n) == 0), 1)


def _carry_out(module: Module, function: Function, unadded: Iterable[Value]) -> None:
    """Emits the sums, in place. Nothing is added to `unadded` memory."""
    kept = frozenset(unadded)
    cfg = Cfg(function)

    def follows(block: BasicBlock) -> BasicBlock | None:
        """What control goes on to, if it comes there from here alone."""
        last = block.terminator
        return last.targets[0] if isinstance(last, I.Branch) and cfg.preds[last.targets[0]] == [block] else None

    inner = {follows(block) for block in cfg.rpo}
    for block in cfg.rpo:
        waiting: _Waiting = {}
        current = None if block in inner else block
        while current is not None:
            following = follows(current)
            current.instructions = _summed(module, current, kept, waiting, ends=following is None)
            current = following
    for name in [n for n in module.functions if n.startswith(_NOTE)]:
        del module.functions[name]


def _summed(
    module: Module, block: BasicBlock, kept: frozenset[Value], waiting: _Waiting, *, ends: bool
) -> list[I.Instruction]:
    at = Builder(BasicBlock())
    for instruction in block.instructions:
        if _is_note(instruction):
            pointer, part, bits, mask = instruction.operands[:4]
            waiting.setdefault((part.type, int_value(bits) or 0, int_value(mask) or 0), []).append((pointer, part))
            continue
        if ends if instruction.is_terminator else not is_beside(instruction, kept):
            _flush(module, at, waiting)
        at.block.instructions.append(instruction)
    return at.block.instructions


def _flush(module: Module, at: Builder, waiting: _Waiting) -> None:
    for (_, bits, mask), terms in waiting.items():
        while terms:
            count = min(_MOST, 1 << (len(terms).bit_length() - 1))
            _sum(module, at, terms[:count], bits, const_int(T.I32, mask))
            del terms[:count]
    waiting.clear()


def _sum(module: Module, at: Builder, terms: list[_Term], bits: int, mask: Value) -> None:
    """A power of two of sums."""
    lane = lane_number(module, at)
    rest = bits
    for bit in (b for b in _BITS if bits & b):
        if len(terms) > 1:
            upper = at.icmp("ne", at.binary("and", lane, const_int(T.I32, bit)), const_int(T.I32, 0))
            half = len(terms) // 2
            pairs = list(zip(terms[:half], terms[half:], strict=True))
            given = [at.select(upper, low, high) for (_, low), (_, high) in pairs]
            own = [(at.select(upper, q, p), at.select(upper, high, low)) for (p, low), (q, high) in pairs]
            rest ^= bit
        else:
            own, given = terms, [terms[0][1]]
        other = at.binary("xor", lane, const_int(T.I32, bit))
        terms = [(p, _plus(at, x, _from(module, at, mask, g, other))) for (p, x), g in zip(own, given, strict=True)]
    mine = at.icmp("eq", at.binary("and", lane, const_int(T.I32, rest)), const_int(T.I32, 0))
    for pointer, total in terms:
        at.call(warp_helper(module, f"{WARP_ADD}one.", _ADD, total.type), [pointer, total, mine])


def _plus(at: Builder, x: Value, y: Value) -> Value:
    return at.binary("fadd", x, y, SUM_FLAGS)


def _from(module: Module, at: Builder, mask: Value, value: Value, lane: Value) -> Value:
    name = f"__je_shuffle_{_kind(value.type)}"
    return Declarations(module).invoke(at, name, value.type, [mask, value, lane], WARP_WORDS, ("convergent",))


def _kind(type_: T.Type) -> str:
    return "f32" if type_ == T.FLOAT else "f64"


def _is_note(instruction: I.Instruction) -> bool:
    return callee_name(instruction).startswith(_NOTE)


def is_beside(instruction: I.Instruction, kept: frozenset[Value]) -> bool:
    """Whether sums that are made later do not change what an instruction does: it is no access of memory that is added
    to, but an addition."""
    match instruction:
        case I.Load() | I.Store():
            base = I.base_of(instruction.operands[0 if isinstance(instruction, I.Load) else 1])
            while isinstance(base, ConstantExpr) and base.opcode == "getelementptr":
                base = base.operands[0]
            return isinstance(base, I.Alloca) or base in kept
        case I.AtomicRMW():
            return instruction.opcode == "atomicrmw" and instruction.operation == "fadd"
        case I.CallBase():
            return is_memory_free(instruction) and not is_meeting(instruction)
        case _:
            return not isinstance(instruction, I.CmpXchg | I.Fence | I.VAArg)
