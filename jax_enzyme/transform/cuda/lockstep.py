"""What threads do to memory, followed without data: addresses and order, as far as both follow from thread numbers and
constants.

All threads go through the code of one thread together, each at its own place in it; those that are furthest behind go
on. Of a value it is known, per thread,

    a number                          what thread numbers, constants and iterations make
    a number + something common       what an argument or a load from one address adds, the same for all threads
    a number + something of its own   what a load adds: the same for threads that have the same address
    a number + anything               everything else

`tokens` say which: 0, the number of the common thing, a negative number, or `ANYTHING`. Where nothing is known of a
condition, threads take both ways: by turns where they may part, and all the same one otherwise; loops go round a few
times. Only what addresses and branches around accesses need is followed. So the result is what happens in some runs;
long ones are cut off.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.divergence import Divergence
from jax_enzyme.analysis.dominators import Dominators, PostDominators
from jax_enzyme.analysis.folding import Numbers, folded
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reach import Reached, made_of
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantExpr, Value, int_value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.accesses import rows_of

ANYTHING = -1
REGION = 40
"""Variables lie this many bits apart."""

_STEPS = 4_000
_ROWS = 100_000
_ROUNDS = 2
"""The most instructions that are followed, the most accesses, and how often loops of unknown length go round."""

_MIXING = 0x9E3779B1
"""Threads that take different ways are spread as by dice, whatever pairs of them meet in memory."""

_MIXERS = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB, 0x2545F4914F6CDD1D)
"""Large odd numbers: sums of products with them differ where the factors do, but by chance."""

_MOVES = frozenset(("ptrtoint", "inttoptr", "bitcast", "addrspacecast"))

Lanes = NDArray[np.bool_]


@dataclass(frozen=True)
class SharedAccess:
    """One instruction's access by some threads: what it does, how many bytes, and per thread its number, the address
    with its token, how many barriers it came to before, how many barriers and operations of warps, and whether it is a
    guess that it comes there; and what divides all that is not known of the addresses."""

    instruction: I.Instruction
    kind: int
    size: int
    thread: Numbers
    address: Numbers
    token: Numbers
    epoch: Numbers
    turn: Numbers
    guessed: Lanes
    stride: int


@dataclass(frozen=True)
class Known:
    """A value per thread. No tokens: all numbers are known."""

    numbers: Numbers
    tokens: Numbers | None = None

    def all_tokens(self) -> Numbers:
        return np.zeros_like(self.numbers) if self.tokens is None else self.tokens


@dataclass(frozen=True)
class Crowd:
    """The threads that go together: their numbers in their blocks, and what each has for the functions that tell it
    where it is."""

    threads: Numbers
    indices: Mapping[str, Numbers]

    @staticmethod
    def of(shape: Shape, blocks: Sequence[tuple[int, int, int]]) -> Crowd:
        """The threads of some blocks."""
        x, y, _ = shape.block
        t = np.tile(np.arange(shape.threads), len(blocks))
        indices: dict[str, Numbers] = dict(zip(marks.THREADS, (t % x, t // x % y, t // (x * y)), strict=True))
        indices |= {marks.LANE: t % 32, marks.WARP: t // 32}
        columns = np.repeat(np.array(blocks), shape.threads, axis=0)
        indices |= {name: columns[:, axis] for axis, name in enumerate(marks.BLOCKS)}
        return Crowd(t, indices)


def shared_accesses(
    module: Module, kernel: Function, shape: Shape, regions: Mapping[Value, int], block: tuple[int, int, int], turn: int
) -> list[SharedAccess]:
    """The accesses of the threads of one block. `kernel` is the function of one thread, `regions` the addresses of
    shared variables. `turn` is which way is taken first where nothing is known."""
    return _SharedAccesses(module, kernel, Crowd.of(shape, [block]), regions, turn).found


class Lockstep:
    """Goes through a kernel. `regions` are the addresses of variables, `turn` says which way is taken first where
    nothing is known, and `steps` how many instructions are followed at most."""

    def __init__(
        self, module: Module, kernel: Function, crowd: Crowd, regions: Mapping[Value, int], turn: int, steps: int
    ) -> None:
        self.layout = DataLayout(module)
        self.crowd = crowd
        self.guesses = 0
        """How often a way was taken of which nothing is known."""
        self.guessed = np.zeros(len(crowd.threads), bool)
        """Which threads are on such a way."""
        self._guessed_until: dict[BasicBlock | None, Lanes] = {}
        self._guessed_truths: dict[Value, Lanes] = {}
        self._cfg = Cfg(kernel)
        self._divergence = Divergence(self._cfg, _differs, _agreed)
        self._joins = PostDominators(self._cfg).idom
        self._loops = Loops(self._cfg, Dominators(self._cfg)).loop_of
        self._numbers = {b: n for n, b in enumerate(self._cfg.rpo)}
        self._regions = regions
        self._first = turn
        self._steps = steps
        self._values: dict[Value, Known] = {}
        self._names: dict[Hashable, int] = {}
        self._kinds: dict[int, Numbers] = {}
        self._strides: dict[int, int] = {0: 0}
        """Of tokens, what divides the number that is not known."""
        self._everyone = np.arange(len(crowd.threads))
        self._lost = 0
        self._constants: dict[Value, Known] = {}
        self._visits: dict[BasicBlock, int] = {}
        self._needed, self._branches = self._slice()

    def watches(self, base: Value) -> bool:
        """Whether accesses of what a pointer starts from matter."""
        raise NotImplementedError

    def meets(self, instruction: I.Instruction, lanes: Lanes) -> None:
        """Threads come to a meeting."""

    def accesses(self, instruction: I.Instruction, size: int, kind: int, address: Known, lanes: Lanes) -> bool:
        """Threads access memory that is watched. Whether they are followed further."""
        raise NotImplementedError

    # -- what matters

    def _slice(self) -> tuple[set[Value], set[BasicBlock]]:
        """The values that are followed, and the blocks whose branch is: others go straight to where their ways join."""
        events = {b: [i for i in b.instructions if self._is_event(i)] for b in self._cfg.rpo}
        pointers = (o for e in events.values() for i in e for o in i.operands if T.is_pointer(o.type))
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
        rows = rows_of(instruction, self.layout)
        copies = isinstance(instruction, I.Call) and bool(rows)
        return _meets(instruction) or copies or any(self.watches(I.base_of(pointer)) for pointer, _, _ in rows)

    # -- going on

    def run(self) -> bool:
        """Whether all threads came to the end."""
        gone = len(self._cfg.rpo)
        at = np.zeros_like(self.crowd.threads)
        steps, goes_on = 0, True
        while goes_on and steps < self._steps:
            number = int(at.min())
            if number == gone:
                return True
            block, lanes = self._cfg.rpo[number], at == number
            self._rejoin(block, lanes)
            for instruction in block.instructions:
                if instruction in self._needed and not isinstance(instruction, I.Phi):
                    self._guess(instruction, np.zeros_like(lanes), lanes)
                    self._assign(instruction, self._evaluate(instruction, lanes), lanes)
                    steps += 1
                goes_on &= self._happens(instruction, lanes)
            for target, taken in self._leave(block, lanes):
                at[taken] = gone if target is None else self._numbers[target]
            steps += 1
        return False

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
        asked = last.operands[0]
        condition = self._value(asked)
        unknown = lanes & ((condition.all_tokens() != 0) | self._guessed_truths.get(asked, np.zeros_like(lanes)))
        holds = self._chosen(block, condition, lanes)
        self._assign(asked, Known(holds.astype(np.int64)), lanes)
        self._guess(asked, unknown, lanes)
        self._part(block, unknown)
        first, second = last.targets
        return [(w, some) for w, some in ((first, lanes & holds), (second, lanes & ~holds)) if some.any()]

    def _cases(self, block: BasicBlock, last: I.Switch, lanes: Lanes) -> list[tuple[BasicBlock, Lanes]]:
        value = self._value(last.operands[0])
        unknown = value.all_tokens() != 0
        self._part(block, lanes & unknown)
        number = self._visit(block) % len(last.targets)
        rest, found = lanes.copy(), list[tuple[BasicBlock, Lanes]]()
        for n, case in enumerate(last.operands[1:], 1):
            some = rest & np.where(unknown, n == number, value.numbers == int_value(case))
            found.append((last.targets[n], some))
            rest &= ~some
        return [(target, some) for target, some in (*found, (last.targets[0], rest)) if some.any()]

    def _chosen(self, block: BasicBlock, condition: Known, lanes: Lanes) -> Lanes:
        """Where a condition holds; a choice where that is not known."""
        holds = condition.numbers != 0
        if condition.tokens is None or not (condition.tokens[lanes] != 0).any():
            return holds
        visit = self._visit(block)
        self.guesses += 1
        loop = self._loops[block]
        staying = [n for n, target in enumerate(block.terminator.targets) if loop is not None and target in loop]
        together = not self._divergence.parts(block) or self._meets_between(block)
        if len(staying) == 1:
            stay = visit % (_ROUNDS + 1) < _ROUNDS
            choice = np.full(len(lanes), stay == (staying[0] == 0))
        elif together:
            choice = np.full(len(lanes), (visit + self._first) % 2 == 0)
        else:
            choice = ((self.crowd.threads * _MIXING >> 16) + visit + self._first) % 2 == 0
        return np.where(condition.tokens != 0, choice, holds)

    def _guess(self, condition: Value, unknown: Lanes, lanes: Lanes) -> None:
        """Of some threads, whether it was a guess what a condition is: it stays that until it is computed again."""
        if condition in self._guessed_truths or unknown.any():
            before = self._guessed_truths.get(condition, np.zeros_like(lanes))
            self._guessed_truths[condition] = np.where(lanes, unknown, before)

    def _part(self, block: BasicBlock, lanes: Lanes) -> None:
        """Threads go ways of which nothing is known, until these join."""
        if lanes.any():
            until = self._joins.get(block)
            self._guessed_until[until] = self._guessed_until.get(until, np.zeros_like(lanes)) | lanes
            self.guessed = self.guessed | lanes

    def _rejoin(self, block: BasicBlock, lanes: Lanes) -> None:
        if block in self._guessed_until:
            self._guessed_until[block] = self._guessed_until[block] & ~lanes
            self.guessed = np.any([*self._guessed_until.values()], axis=0)

    def _visit(self, block: BasicBlock) -> int:
        self._visits[block] = self._visits.get(block, -1) + 1
        return self._visits[block]

    def _meets_between(self, block: BasicBlock) -> bool:
        between = self._divergence.between(block)
        return between is None or any(map(_meets, (i for b in between for i in b.instructions)))

    # -- events

    def _happens(self, instruction: I.Instruction, lanes: Lanes) -> bool:
        if _meets(instruction):
            self.meets(instruction, lanes)
            return True
        goes_on = True
        for pointer, size, kind in rows_of(instruction, self.layout):
            if isinstance(size, int) and self.watches(I.base_of(pointer)):
                goes_on &= self.accesses(instruction, size, kind, self._value(pointer), lanes)
        return goes_on

    # -- values

    def _assign(self, value: Value, made: Known, lanes: Lanes) -> None:
        if not isinstance(value, I.Instruction):
            return
        before = self._values.get(value)
        if before is None or lanes.all():
            self._values[value] = made
            return
        tokens = None
        if before.tokens is not None or made.tokens is not None:
            tokens = np.where(lanes, made.all_tokens(), before.all_tokens())
        self._values[value] = Known(np.where(lanes, made.numbers, before.numbers), tokens)

    def _value(self, value: Value) -> Known:
        if isinstance(value, I.Instruction) and value not in self._regions:
            return self._values[value] if value in self._values else self._token(ANYTHING)
        if value not in self._constants:
            number = self._regions[value] if value in self._regions else self._constant(value)
            if number is not None:
                self._constants[value] = Known(np.full_like(self.crowd.threads, number))
            else:
                self._constants[value] = self._token(self._name(value))
        return self._constants[value]

    def _constant(self, value: Value) -> int | None:
        """The number of a constant, or the address of a variable's part."""
        if not isinstance(value, ConstantExpr):
            return int_value(value)
        if value.opcode not in ("addrspacecast", "getelementptr") or not value.operands:
            return None
        number = self._regions.get(value.operands[0], self._constant(value.operands[0]))
        if number is None or value.opcode == "addrspacecast":
            return number
        assert value.source_type is not None
        offset, steps = self.layout.steps(value.source_type, value.operands[1:])
        return None if steps else number + offset

    def _name(self, key: Hashable) -> int:
        return self._names.setdefault(key, len(self._names) + 1)

    def _own(self, key: Hashable, kinds: Numbers) -> int:
        """The negative number of what threads have of their own: those of one kind the same."""
        token = ANYTHING - self._name((key, hash(kinds.tobytes())))
        self._kinds[token] = kinds
        return token

    def _fresh(self) -> int:
        """What is new, for each thread."""
        return self._own(len(self._names), self._everyone)

    def identity(self, numbers: Numbers, tokens: Numbers) -> Numbers:
        """Numbers that tell apart what threads have, also where it is not known."""
        kinds = np.zeros_like(numbers)
        for token in np.unique(tokens[tokens < 0]).tolist():
            self._lost += token == ANYTHING
            kind = self._everyone + (self._lost << 20) if token == ANYTHING else self._kinds[token]
            kinds = np.where(tokens == token, kind, kinds)
        with np.errstate(over="ignore"):
            return numbers * _MIXERS[0] + tokens * _MIXERS[1] + kinds * _MIXERS[2]

    def stride(self, token: int) -> int:
        return self._strides.get(token, 1)

    def _token(self, token: int, numbers: Numbers | None = None) -> Known:
        return Known(
            np.zeros_like(self.crowd.threads) if numbers is None else numbers, np.full_like(self.crowd.threads, token)
        )

    def _evaluate(self, instruction: I.Instruction, lanes: Lanes) -> Known:
        match instruction:
            case I.Load():
                return self._loaded(instruction, lanes)
            case I.Call() if callee_name(instruction) in self.crowd.indices:
                return Known(self.crowd.indices[callee_name(instruction)])
            case I.GetElementPtr():
                return self._address(instruction, lanes)
            case I.Select():
                return self._selected(instruction, lanes)
            case I.Freeze():
                return self._value(instruction.operands[0])
            case _:
                return self._computed(instruction, lanes)

    def _loaded(self, load: I.Load, lanes: Lanes) -> Known:
        """The same for all threads that read one address, unless something was written there in between."""
        one = self._one(self._value(load.operands[0]), lanes)
        when = self.when(lanes)
        if when is None:
            return self._token(self._fresh())
        if one is None:
            address = self._value(load.operands[0])
            return self._token(
                self._own(("load", when, load.type), self.identity(address.numbers, address.all_tokens()))
            )
        return self._token(self._name(("load", one, when, load.type)))

    def when(self, lanes: Lanes) -> int | None:
        """A number that changes where threads may see what others wrote; None where theirs differ."""
        return 0

    def _one(self, value: Known, lanes: Lanes) -> tuple[int, int] | None:
        """What some threads have in common: a number and its token."""
        numbers, tokens = value.numbers[lanes], value.all_tokens()[lanes]
        if tokens[0] < 0 or (numbers != numbers[0]).any() or (tokens != tokens[0]).any():
            return None
        return int(numbers[0]), int(tokens[0])

    def _common(self, value: Known, lanes: Lanes) -> int | None:
        """The token that some threads have."""
        if value.tokens is None:
            return 0
        tokens = value.tokens[lanes]
        return None if tokens[0] == ANYTHING or (tokens != tokens[0]).any() else int(tokens[0])

    def _address(self, gep: I.GetElementPtr, lanes: Lanes) -> Known:
        moves = self.layout.moves(gep.source_type, gep.operands[1:])
        if moves is None:
            return self._token(ANYTHING)
        terms = [(self._value(gep.operands[0]), 1), *((self._value(v), factor) for v, factor in moves[1])]
        return self._sum(terms, moves[0], lanes)

    def _sum(self, terms: list[tuple[Known, int]], constant: int, lanes: Lanes) -> Known:
        numbers = np.full_like(self.crowd.threads, constant)
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
            name = first if not more and factor == 1 else self._name_of_sum(unknown)
            self._strides[name] = gcd(*(self.stride(token) * factor for token, factor in unknown.items()))
            tokens = np.full_like(numbers, name) if tokens is None else np.where(tokens < 0, tokens, name)
        return Known(numbers, tokens)

    def _name_of_sum(self, terms: Mapping[int, int]) -> int:
        key = ("sum", *sorted(terms.items()))
        own = [self._kinds[token] * factor for token, factor in terms.items() if token < 0]
        return self._own(key, np.sum(own, axis=0)) if own else self._name(key)

    def _selected(self, select: I.Select, lanes: Lanes) -> Known:
        condition, *values = (self._value(o) for o in select.operands)
        if condition.tokens is not None:
            return self._opaque(select, lanes)
        holds = condition.numbers != 0
        numbers = np.where(holds, values[0].numbers, values[1].numbers)
        if values[0].tokens is None and values[1].tokens is None:
            return Known(numbers)
        return Known(numbers, np.where(holds, values[0].all_tokens(), values[1].all_tokens()))

    def _computed(self, instruction: I.Instruction, lanes: Lanes) -> Known:
        if instruction.opcode in _MOVES and not T.is_float(instruction.type):
            return self._value(instruction.operands[0])
        values = [self._value(o) for o in instruction.operands]
        if isinstance(instruction, I.Call):
            values = values[:-1]
        if instruction.opcode in ("add", "sub") or "disjoint" in instruction.flags:
            sign = -1 if instruction.opcode == "sub" else 1
            made = self._sum([(values[0], 1), (values[1], sign)], 0, lanes)
            if made.tokens is not None:
                return made
        if all(v.tokens is None for v in values):
            numbers = folded(instruction, [v.numbers for v in values])
            return self._token(ANYTHING) if numbers is None else Known(numbers)
        if instruction.opcode in ("mul", "shl"):
            factor = self._one(values[1], lanes)
            if factor is not None and factor[1] == 0 and 0 <= factor[0] < 1 << 20:
                return self._sum([(values[0], factor[0] if instruction.opcode == "mul" else 1 << factor[0])], 0, lanes)
        if instruction.opcode in ("sext", "zext", "trunc"):
            token = self._common(values[0], lanes)
            if token is not None:
                key = (instruction.opcode, token)
                name = self._own(key, self._kinds[token]) if token < 0 else self._name(key)
                if instruction.opcode != "trunc":
                    self._strides[name] = self.stride(token)
                return self._token(name, values[0].numbers)
        return self._opaque(instruction, lanes)

    def _opaque(self, instruction: I.Instruction, lanes: Lanes) -> Known:
        """The same for all threads where the operands are."""
        if _differs(instruction) or not lanes.any():
            return self._token(self._fresh())
        values = [self._value(o) for o in instruction.operands]
        ones = [self._one(v, lanes) for v in values]
        how: Any = instruction.predicate if isinstance(instruction, I.Compare) else ""
        if not any(one is None for one in ones):
            return self._token(self._name((instruction.opcode, how, *ones)))
        kinds = np.zeros_like(self._everyone)
        with np.errstate(over="ignore"):
            for value in values:
                kinds = kinds * _MIXERS[3] + self.identity(value.numbers, value.all_tokens())
        return self._token(self._own((instruction.opcode, how), kinds))


class _SharedAccesses(Lockstep):
    def __init__(self, module: Module, kernel: Function, crowd: Crowd, regions: Mapping[Value, int], turn: int) -> None:
        super().__init__(module, kernel, crowd, regions, turn, _STEPS)
        self._epoch = np.zeros_like(crowd.threads)
        self._turn = np.zeros_like(crowd.threads)
        self._rows = 0
        self.found: list[SharedAccess] = []
        self.run()

    def watches(self, base: Value) -> bool:
        return base in self._regions or not isinstance(base, Argument | GlobalVariable | I.Alloca)

    def when(self, lanes: Lanes) -> int | None:
        epochs = np.unique(self._epoch[lanes])
        return int(epochs[0]) if len(epochs) == 1 else None

    def meets(self, instruction: I.Instruction, lanes: Lanes) -> None:
        self._turn[lanes] = self._turn[lanes].max(initial=0) + 1  # some may have met more often on their ways here
        if _agreed(instruction):
            self._epoch[lanes] += 1

    def accesses(self, instruction: I.Instruction, size: int, kind: int, address: Known, lanes: Lanes) -> bool:
        lanes = lanes & (address.numbers >> REGION > 0)
        if lanes.any():
            tokens = np.maximum(address.all_tokens(), ANYTHING)
            rows = (self.crowd.threads, address.numbers, tokens, self._epoch, self._turn)
            made = [row[lanes] for row in rows]
            self._rows += len(made[0])
            stride = gcd(*map(self.stride, np.unique(address.all_tokens()[lanes]).tolist()))
            self.found.append(SharedAccess(instruction, kind, size, *made, guessed=self.guessed[lanes], stride=stride))
        return self._rows < _ROWS


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
