"""What the threads of one block do to shared memory, followed without data: addresses and order, as far as both follow
from thread numbers and constants.

All threads go through the code of one thread together, each at its own place in it; those that are furthest behind go
on. Of a value it is known, per thread,

    a number                       what thread numbers, constants and iterations make
    a number + something common    what an argument or a load from one address adds, the same for all threads
    a number + anything            everything else

`tokens` say which: 0, the number of the common thing, or `ANYTHING`. Where nothing is known of a condition, threads
take both ways: by turns where they may part, and all the same one otherwise; loops go round a few times. Only what
addresses and branches around accesses need is followed. So the result is what happens in some runs; long ones are cut
off.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.divergence import Divergence
from jax_enzyme.analysis.dominators import Dominators, PostDominators
from jax_enzyme.analysis.folding import Numbers, folded
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reach import Reached, made_of
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.accesses import rows_of

ANYTHING = -1
REGION = 40
"""Shared variables lie this many bits apart."""

_STEPS = 4_000
_ROWS = 100_000
_ROUNDS = 2
"""The most instructions that are followed, the most accesses, and how often loops of unknown length go round."""

_MIXING = 0x9E3779B1
"""Threads that take different ways are spread as by dice, whatever pairs of them meet in memory."""


Lanes = NDArray[np.bool_]


@dataclass(frozen=True)
class SharedAccess:
    """One instruction's access by some threads: what it does, how many bytes, and per thread its number, the address
    with its token, how many barriers it came to before, and how many barriers and operations of warps."""

    instruction: I.Instruction
    kind: int
    size: int
    thread: Numbers
    address: Numbers
    token: Numbers
    epoch: Numbers
    turn: Numbers


@dataclass(frozen=True)
class _Known:
    """A value per thread. No tokens: all numbers are known."""

    numbers: Numbers
    tokens: Numbers | None = None

    def all_tokens(self) -> Numbers:
        return np.zeros_like(self.numbers) if self.tokens is None else self.tokens


def shared_accesses(
    module: Module, kernel: Function, shape: Shape, regions: Mapping[Value, int], block: tuple[int, int, int], turn: int
) -> list[SharedAccess]:
    """The accesses of the threads of one block. `kernel` is the function of one thread, `regions` the addresses of
    shared variables. `turn` is which way is taken first where nothing is known."""
    return _Lockstep(module, kernel, shape, regions, block, turn).run()


class _Lockstep:
    def __init__(
        self,
        module: Module,
        kernel: Function,
        shape: Shape,
        regions: Mapping[Value, int],
        block: tuple[int, int, int],
        turn: int,
    ) -> None:
        self._layout = DataLayout(module)
        self._cfg = Cfg(kernel)
        self._divergence = Divergence(self._cfg, _differs, _agreed)
        self._joins = PostDominators(self._cfg).idom
        self._loops = Loops(self._cfg, Dominators(self._cfg)).loop_of
        self._numbers = {b: n for n, b in enumerate(self._cfg.rpo)}
        self._regions = regions
        self._first = turn
        self._threads = np.arange(shape.threads)
        x, y, _ = shape.block
        t = self._threads
        self._indices: dict[str, Numbers] = dict(zip(marks.THREADS, (t % x, t // x % y, t // (x * y)), strict=True))
        self._indices |= {marks.LANE: t % 32, marks.WARP: t // 32}
        self._indices |= {n: np.full_like(t, at) for n, at in zip(marks.BLOCKS, block, strict=True)}
        self._values: dict[Value, _Known] = {}
        self._names: dict[Hashable, int] = {}
        self._constants: dict[Value, _Known] = {}
        self._visits: dict[BasicBlock, int] = {}
        self._epoch = np.zeros_like(t)
        self._turn = np.zeros_like(t)
        self._found: list[SharedAccess] = []
        self._rows = 0
        self._needed, self._branches = self._slice()

    # -- what matters

    def _slice(self) -> tuple[set[Value], set[BasicBlock]]:
        """The values that are followed, and the blocks whose branch is: others go straight to where their ways join."""
        events = {b: [i for i in b.instructions if self._is_event(i)] for b in self._cfg.rpo}
        pointers = (o for e in events.values() for i in e for o in i.operands if o.type == T.PTR)
        needed = Reached(pointers, lambda v: isinstance(v, I.Instruction))
        branches: set[BasicBlock] = set()
        while True:
            for value in needed:
                needed.add(made_of(value)[:1] if isinstance(value, I.Load) else made_of(value))
            matter = [b for b in self._cfg.rpo if len(self._cfg.succs[b]) > 1 and b not in branches]
            matter = [b for b in matter if self._matters(b, events, set(needed.all))]
            if not matter:
                return set(needed.all), branches
            branches.update(matter)
            needed.add(o for b in matter for o in b.terminator.operands)

    def _matters(self, block: BasicBlock, events: Mapping[BasicBlock, list[I.Instruction]], needed: set[Value]) -> bool:
        between = self._divergence.between(block)
        join = self._joins.get(block)
        if between is None or join is None:
            return True
        inside = any(events[b] or any(i in needed for i in b.instructions) for b in between)
        return inside or any(isinstance(i, I.Phi) and i in needed for i in join.instructions)

    def _is_event(self, instruction: I.Instruction) -> bool:
        rows = rows_of(instruction, self._layout)
        copies = isinstance(instruction, I.Call) and bool(rows)
        return _meets(instruction) or copies or any(self._may_be_shared(I.base_of(pointer)) for pointer, _, _ in rows)

    def _may_be_shared(self, base: Value) -> bool:
        return base in self._regions or not isinstance(base, Argument | GlobalVariable | I.Alloca)

    # -- going on

    def run(self) -> list[SharedAccess]:
        gone = len(self._cfg.rpo)
        at = np.zeros_like(self._threads)
        steps = 0
        while steps < _STEPS and self._rows < _ROWS:
            number = int(at.min())
            if number == gone:
                break
            block, lanes = self._cfg.rpo[number], at == number
            for instruction in block.instructions:
                if instruction in self._needed and not isinstance(instruction, I.Phi):
                    self._assign(instruction, self._evaluate(instruction, lanes), lanes)
                    steps += 1
                self._happens(instruction, lanes)
            for target, taken in self._leave(block, lanes):
                at[taken] = gone if target is None else self._numbers[target]
            steps += 1
        return self._found

    def _leave(self, block: BasicBlock, lanes: Lanes) -> Iterable[tuple[BasicBlock | None, Lanes]]:
        ways = self._cfg.succs[block]
        if not ways:
            return [(None, lanes)]
        if len(ways) > 1 and block not in self._branches:
            return [(self._joins[block], lanes)]
        taken = [(ways[0], lanes)] if len(ways) == 1 else self._ways(block, lanes)
        for target, some in taken:
            self._enter(target, block, some)
        return taken

    def _enter(self, target: BasicBlock, source: BasicBlock, lanes: Lanes) -> None:
        phis = [i for i in target.instructions if isinstance(i, I.Phi) and i in self._needed]
        made = [self._value(phi.operands[phi.targets.index(source)]) for phi in phis]
        for phi, value in zip(phis, made, strict=True):
            self._assign(phi, value, lanes)

    def _ways(self, block: BasicBlock, lanes: Lanes) -> list[tuple[BasicBlock, Lanes]]:
        last = block.terminator
        if isinstance(last, I.Switch):
            return self._cases(block, last, lanes)
        condition = self._value(last.operands[0])
        holds = self._chosen(block, condition, lanes)
        self._assign(last.operands[0], _Known(holds.astype(np.int64)), lanes)
        first, second = last.targets
        return [(w, some) for w, some in ((first, lanes & holds), (second, lanes & ~holds)) if some.any()]

    def _cases(self, block: BasicBlock, last: I.Switch, lanes: Lanes) -> list[tuple[BasicBlock, Lanes]]:
        value = self._value(last.operands[0])
        unknown = value.all_tokens() != 0
        number = self._visit(block) % len(last.targets)
        rest, found = lanes.copy(), list[tuple[BasicBlock, Lanes]]()
        for n, case in enumerate(last.operands[1:], 1):
            some = rest & np.where(unknown, n == number, value.numbers == int_value(case))
            found.append((last.targets[n], some))
            rest &= ~some
        return [(target, some) for target, some in (*found, (last.targets[0], rest)) if some.any()]

    def _chosen(self, block: BasicBlock, condition: _Known, lanes: Lanes) -> Lanes:
        """Where a condition holds; a choice where that is not known."""
        holds = condition.numbers != 0
        if condition.tokens is None or not (condition.tokens[lanes] != 0).any():
            return holds
        visit = self._visit(block)
        loop = self._loops[block]
        staying = [n for n, target in enumerate(block.terminator.targets) if loop is not None and target in loop]
        together = not self._divergence.parts(block) or self._meets_between(block)
        if len(staying) == 1:
            stay = visit % (_ROUNDS + 1) < _ROUNDS
            choice = np.full(len(lanes), stay == (staying[0] == 0))
        elif together:
            choice = np.full(len(lanes), (visit + self._first) % 2 == 0)
        else:
            choice = ((self._threads * _MIXING >> 16) + visit + self._first) % 2 == 0
        return np.where(condition.tokens != 0, choice, holds)

    def _visit(self, block: BasicBlock) -> int:
        self._visits[block] = self._visits.get(block, -1) + 1
        return self._visits[block]

    def _meets_between(self, block: BasicBlock) -> bool:
        between = self._divergence.between(block)
        return between is None or any(map(_meets, (i for b in between for i in b.instructions)))

    # -- events

    def _happens(self, instruction: I.Instruction, lanes: Lanes) -> None:
        if _meets(instruction):
            self._turn[lanes] = self._turn[lanes].max(initial=0) + 1  # some may have met more often on their ways here
            if marks.is_meeting(instruction) and marks.group_of(instruction) == marks.MEET_BLOCK:
                self._epoch[lanes] += 1
            return
        for pointer, size, kind in rows_of(instruction, self._layout):
            if isinstance(size, int):
                self._access(instruction, pointer, size, kind, lanes)

    def _access(self, instruction: I.Instruction, pointer: Value, size: int, kind: int, lanes: Lanes) -> None:
        if not self._may_be_shared(I.base_of(pointer)):
            return
        value = self._value(pointer)
        lanes = lanes & (value.numbers >> REGION > 0)
        if not lanes.any():
            return
        rows = (self._threads, value.numbers, value.all_tokens(), self._epoch, self._turn)
        made = [row[lanes] for row in rows]
        self._rows += len(made[0])
        self._found.append(SharedAccess(instruction, kind, size, *made))

    # -- values

    def _assign(self, value: Value, made: _Known, lanes: Lanes) -> None:
        if not isinstance(value, I.Instruction):
            return
        before = self._values.get(value)
        if before is None or lanes.all():
            self._values[value] = made
            return
        tokens = None
        if before.tokens is not None or made.tokens is not None:
            tokens = np.where(lanes, made.all_tokens(), before.all_tokens())
        self._values[value] = _Known(np.where(lanes, made.numbers, before.numbers), tokens)

    def _value(self, value: Value) -> _Known:
        if isinstance(value, I.Instruction):
            return self._values[value] if value in self._values else self._token(ANYTHING)
        if value not in self._constants:
            number = self._regions[value] if value in self._regions else int_value(value)
            if number is not None:
                self._constants[value] = _Known(np.full_like(self._threads, number))
            else:
                self._constants[value] = self._token(self._name(value))
        return self._constants[value]

    def _name(self, key: Hashable) -> int:
        return self._names.setdefault(key, len(self._names) + 1)

    def _token(self, token: int, numbers: Numbers | None = None) -> _Known:
        return _Known(np.zeros_like(self._threads) if numbers is None else numbers, np.full_like(self._threads, token))

    def _evaluate(self, instruction: I.Instruction, lanes: Lanes) -> _Known:
        match instruction:
            case I.Load():
                return self._loaded(instruction, lanes)
            case I.Call() if callee_name(instruction) in self._indices:
                return _Known(self._indices[callee_name(instruction)])
            case I.GetElementPtr():
                return self._address(instruction, lanes)
            case I.Select():
                return self._selected(instruction, lanes)
            case I.Freeze():
                return self._value(instruction.operands[0])
            case _:
                return self._computed(instruction, lanes)

    def _loaded(self, load: I.Load, lanes: Lanes) -> _Known:
        """The same for all threads that read one address, unless something was written there in between."""
        one = self._one(self._value(load.operands[0]), lanes)
        epochs = np.unique(self._epoch[lanes])
        if one is None or len(epochs) > 1:
            return self._token(ANYTHING)
        return self._token(self._name(("load", one, int(epochs[0]), load.type)))

    def _one(self, value: _Known, lanes: Lanes) -> tuple[int, int] | None:
        """What some threads have in common: a number and its token."""
        numbers, tokens = value.numbers[lanes], value.all_tokens()[lanes]
        if tokens[0] == ANYTHING or (numbers != numbers[0]).any() or (tokens != tokens[0]).any():
            return None
        return int(numbers[0]), int(tokens[0])

    def _common(self, value: _Known, lanes: Lanes) -> int | None:
        """The token that some threads have."""
        if value.tokens is None:
            return 0
        tokens = value.tokens[lanes]
        return None if tokens[0] == ANYTHING or (tokens != tokens[0]).any() else int(tokens[0])

    def _address(self, gep: I.GetElementPtr, lanes: Lanes) -> _Known:
        try:
            constant, steps = self._layout.steps(gep.source_type, gep.operands[1:])
        except ValueError:
            return self._token(ANYTHING)
        terms = [(self._value(gep.operands[0]), 1), *((self._value(v), factor) for v, factor in steps)]
        return self._sum(terms, constant, lanes)

    def _sum(self, terms: list[tuple[_Known, int]], constant: int, lanes: Lanes) -> _Known:
        numbers = np.full_like(self._threads, constant)
        unknown: dict[int, int] = {}
        tokens: Numbers | None = None
        for value, factor in terms:
            numbers = numbers + value.numbers * factor
            token = self._common(value, lanes)
            if token is None:
                lost = np.where(value.all_tokens() != 0, ANYTHING, 0)
                tokens = lost if tokens is None else np.minimum(tokens, lost)
            elif token:
                unknown[token] = unknown.get(token, 0) + factor
        unknown = {token: factor for token, factor in unknown.items() if factor}
        if unknown:
            (first, factor), *more = sorted(unknown.items())
            name = first if not more and factor == 1 else self._name(("sum", *sorted(unknown.items())))
            tokens = np.full_like(numbers, name) if tokens is None else np.where(tokens < 0, tokens, name)
        return _Known(numbers, tokens)

    def _selected(self, select: I.Select, lanes: Lanes) -> _Known:
        condition, *values = (self._value(o) for o in select.operands)
        if condition.tokens is not None:
            return self._opaque(select, lanes)
        holds = condition.numbers != 0
        numbers = np.where(holds, values[0].numbers, values[1].numbers)
        if values[0].tokens is None and values[1].tokens is None:
            return _Known(numbers)
        return _Known(numbers, np.where(holds, values[0].all_tokens(), values[1].all_tokens()))

    def _computed(self, instruction: I.Instruction, lanes: Lanes) -> _Known:
        if instruction.opcode in ("ptrtoint", "inttoptr", "bitcast") and not T.is_float(instruction.type):
            return self._value(instruction.operands[0])
        values = [self._value(o) for o in instruction.operands]
        if isinstance(instruction, I.Call):
            values = values[:-1]
        if instruction.opcode in ("add", "sub"):
            sign = -1 if instruction.opcode == "sub" else 1
            made = self._sum([(values[0], 1), (values[1], sign)], 0, lanes)
            if made.tokens is not None:
                return made
        if all(v.tokens is None for v in values):
            numbers = folded(instruction, [v.numbers for v in values])
            return self._token(ANYTHING) if numbers is None else _Known(numbers)
        if instruction.opcode in ("mul", "shl"):
            factor = self._one(values[1], lanes)
            if factor is not None and factor[1] == 0 and 0 <= factor[0] < 1 << 20:
                return self._sum([(values[0], factor[0] if instruction.opcode == "mul" else 1 << factor[0])], 0, lanes)
        if instruction.opcode in ("sext", "zext", "trunc"):
            token = self._common(values[0], lanes)
            if token is not None:
                return self._token(self._name((instruction.opcode, token)), values[0].numbers)
        return self._opaque(instruction, lanes)

    def _opaque(self, instruction: I.Instruction, lanes: Lanes) -> _Known:
        """The same for all threads where the operands are."""
        ones = [self._one(self._value(o), lanes) for o in instruction.operands]
        if any(one is None for one in ones) or _differs(instruction) or not lanes.any():
            return self._token(ANYTHING)
        how: Any = instruction.predicate if isinstance(instruction, I.Compare) else ""
        return self._token(self._name((instruction.opcode, how, *ones)))


def _meets(instruction: I.Instruction) -> bool:
    return marks.is_meeting(instruction) or callee_name(instruction).startswith(marks.SHUFFLE)


def _agreed(instruction: I.Instruction) -> bool:
    return marks.is_meeting(instruction) and marks.group_of(instruction) == marks.MEET_BLOCK


def _differs(instruction: I.Instruction) -> bool:
    match instruction:
        case I.Call():
            name = callee_name(instruction)
            return not (_agreed(instruction) or name in marks.BLOCKS or name.startswith("llvm."))
        case I.Load() | I.AtomicRMW() | I.CmpXchg() | I.Alloca() | I.VAArg():
            return True
        case _:
            return False
