"""Loops that add to memory by comparing and exchanging, as devices without atomic additions needed them, become atomic
additions, which have a derivative.

    before    loop:
                %old = phi double [%first, %entry], [%found, %loop]
                %sum = fadd double %old, %x
                %pair = cmpxchg ptr %p, i64 (bitcast %old), i64 (bitcast %sum)
                %bits = extractvalue %pair, 0
                %found = bitcast i64 %bits to double
                br i1 (icmp eq (bitcast %old), %bits), label %exit, label %loop

    after     loop:
                %old = atomicrmw fadd ptr %p, double %x
                br label %exit
"""

from __future__ import annotations

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.module import Function, Module, callee_of
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import on_functions, place, replace_values

_PURE = frozenset(
    "fneg fadd fsub fmul fdiv bitcast fptrunc fpext sitofp uitofp getelementptr select icmp fcmp add sub mul and or xor"
    " shl lshr ashr trunc zext sext".split()
)
_KINDS: dict[T.Type, T.Type] = {T.I32: T.FLOAT, T.I64: T.DOUBLE}


@dataclass(frozen=True)
class _Loop:
    """`before` and `found` are what was read of memory in the last round and in this one, with their bits; `rest` is
    what computes the term anew in every round."""

    exchange: I.CmpXchg
    update: I.BinaryOp
    term: Value
    before: frozenset[Value]
    found: frozenset[Value]
    rest: tuple[I.Instruction, ...]
    exit: BasicBlock


def lower_atomic_loops(module: Module) -> Module:
    """A module without such loops; itself where there are none."""

    def change(function: Function) -> None:
        for block in function.blocks:
            loop = _loop(module, block)
            if loop is not None:
                replace_values(function, _replace(block, loop))

    return on_functions(module, lambda f: any(_loop(module, b) for b in f.blocks), change)


def _loop(module: Module, block: BasicBlock) -> _Loop | None:
    exchanges = [i for i in block.instructions if isinstance(i, I.CmpXchg)]
    if len(exchanges) != 1 or block not in block.terminator.targets or len(block.terminator.targets) != 2:
        return None
    (exchange,) = exchanges
    phi, exit_ = block.instructions[0], next((t for t in block.terminator.targets if t is not block), None)
    parts = (i for i in block.instructions if isinstance(i, I.ExtractValue) and i.indices == (0,))
    found = _with_bits(block, next(parts, None))
    before = _with_bits(block, phi)
    if exit_ is None or not isinstance(phi, I.Phi) or not any(v in found and b is block for v, b in phi.incoming):
        return None
    update = _unwrapped(exchange.operands[2])
    if not isinstance(update, I.BinaryOp) or exchange.operands[1] not in before or not _repeats(block, before, found):
        return None
    if update.opcode not in ("fadd", "fsub") or update.type != _KINDS.get(exchange.operands[1].type):
        return None
    terms = [o for o in update.operands if o not in before]
    rest = _rest(module, block, {*before, *found, *_with_bits(block, update), exchange})
    if len(terms) != 1 or rest is None or (update.opcode == "fsub" and update.operands[1] in before):
        return None
    return _Loop(exchange, update, terms[0], before, found, rest, exit_)


def _rest(module: Module, block: BasicBlock, own: set[Value]) -> tuple[I.Instruction, ...] | None:
    """What the block computes that does not depend on the memory; None where it does anything else."""
    of_exchange = (I.ExtractValue, I.Compare)
    rest = [i for i in block.instructions[:-1] if i not in own and not (isinstance(i, of_exchange) and _uses(i, own))]
    for instruction in rest:
        pure = _is_pure(module, instruction) if isinstance(instruction, I.CallBase) else instruction.opcode in _PURE
        if not pure or _uses(instruction, own):
            return None
    return tuple(rest)


def _is_pure(module: Module, call: I.CallBase) -> bool:
    callee = callee_of(call)
    words = call.attributes + (() if callee is None else callee.attributes)
    return "memory(none)" in expanded_attributes(module, words)


def _uses(instruction: I.Instruction, values: set[Value]) -> bool:
    return any(o in values for o in instruction.operands)


def _with_bits(block: BasicBlock, value: Value | None) -> frozenset[Value]:
    """A value and its bits as other types."""
    found = {value} if value is not None else set[Value]()
    for instruction in block.instructions:
        if instruction.opcode == "bitcast" and instruction.operands[0] in found:
            found.add(instruction)
    return frozenset(found)


def _unwrapped(value: Value) -> Value:
    return value.operands[0] if isinstance(value, I.Cast) and value.opcode == "bitcast" else value


def _repeats(block: BasicBlock, before: frozenset[Value], found: frozenset[Value]) -> bool:
    """Whether the loop goes on just where the exchange did not take place."""
    condition = block.terminator.operands[0]
    done, again = block.terminator.targets
    if isinstance(condition, I.ExtractValue):
        return condition.indices == (1,) and again is block
    if not isinstance(condition, I.Compare) or condition.opcode != "icmp":
        return False
    x, y = condition.operands
    compared = (x in before and y in found) or (x in found and y in before)
    return compared and {"eq": again, "ne": done}.get(condition.predicate) is block


def _replace(block: BasicBlock, loop: _Loop) -> dict[Value, Value]:
    """Changes the block; what its values are now."""
    at = Builder(BasicBlock())
    at.block.instructions += loop.rest
    kind, exchange = loop.update.type, loop.exchange
    add = I.AtomicRMW(
        kind, "atomicrmw", [exchange.operands[0], loop.term], loop.update.opcode, "monotonic", exchange.align
    )
    old = at.insert(add)
    bits = at.cast("bitcast", old, exchange.operands[1].type)
    replaced: dict[Value, Value] = {v: old if v.type == kind else bits for v in (*loop.before, *loop.found)}
    operands = [replaced.get(o, o) for o in loop.update.operands]
    new = at.insert(I.BinaryOp(kind, loop.update.opcode, operands, flags=loop.update.flags))
    replaced[loop.update] = new
    for instruction in block.instructions:
        if instruction.opcode == "bitcast" and instruction.operands[0] is loop.update:
            replaced[instruction] = at.cast("bitcast", new, instruction.type)
    place(exchange, at.block.instructions[len(loop.rest) :])
    block.instructions = [*at.block.instructions, I.Branch(T.VOID, "br", [], targets=[loop.exit])]
    return replaced
