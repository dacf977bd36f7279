"""Loops tell whether they wrote to some variables at all, where an iteration need not.

    before    for i: if (x[i] > 0) add(&best, x[i])

    after     for i: if (x[i] > 0) add.telling(&best, x[i], &touched)
              add.telling: if (better) { touched = 1; best->value = ... }

What is written may be what was there before, so no comparison tells. Functions that are given the address get copies
that are given the flag's as well; where an address goes elsewhere (into memory, to a function without a body) that is
taken for a write. Code is that of clang before anything is optimised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.clone import clone_function
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import add_parameter, local, locate, pass_argument

FLAG = T.I8
_COMPUTED = (I.GetElementPtr, I.Cast, I.Phi, I.Select)


def tell_writes(module: Module, function: Function, loop: Loop, variables: Iterable[Value]) -> Value | None:
    """Lets a loop with one latch set a new local variable, of the type FLAG, where it writes to any of these, in place;
    none where every iteration does, so that nothing needs to be told."""
    telling = _Telling(module, {}, {})
    writes = [write for write in telling.writes(function, variables) if write.block in loop]
    if _is_certain(function, writes, loop.latches):
        return None
    flag = local(function, FLAG)
    telling.tell(writes, flag)
    return flag


@dataclass(frozen=True)
class _Write:
    """An instruction that writes, or may. A call of a function that writes in some runs alone is told the flag; which
    of its arguments lead to the variables is `given`."""

    block: BasicBlock
    instruction: I.Instruction
    given: tuple[int, ...] = ()


_Given = tuple[Function, tuple[int, ...]]


@dataclass(frozen=True)
class _Telling:
    module: Module
    known: dict[_Given, list[_Write] | None]
    """What functions write to where these of their arguments lead; None while that is being found out."""
    copies: dict[_Given, Function]

    def writes(self, function: Function, variables: Iterable[Value]) -> list[_Write]:
        """What writes to variables, or lets others do so, as often as it does."""
        used = uses(function)
        addresses = Reached(variables)
        given: dict[I.CallBase, set[int]] = {}
        found: dict[I.Instruction, _Write] = {}
        home = {i: block for block in function.blocks for i in block.instructions}
        for address in addresses:
            for user, index in used.get(address, ()):
                match user:
                    case I.Store() if index == 0 and is_plain(user.operands[1], used):
                        addresses.add(u for u, _ in used[user.operands[1]] if isinstance(u, I.Load))
                    case I.Load() | I.Compare() | I.Return():
                        pass
                    case I.CallBase() if index < len(user.arguments):
                        given.setdefault(user, set()).add(index)
                        addresses.add([user] if T.is_pointer(user.type) else ())
                    case _ if isinstance(user, _COMPUTED) and T.is_pointer(user.type):
                        addresses.add([user])
                    case _:
                        found[user] = _Write(home[user], user)
        for call, indices in given.items():
            for write in self._of_call(home[call], call, tuple(sorted(indices))):
                found[call] = write
        return list(found.values())

    def _of_call(self, block: BasicBlock, call: I.CallBase, given: tuple[int, ...]) -> Iterator[_Write]:
        function = call.callee
        if callee_name(call).startswith("llvm.lifetime."):
            return
        given = tuple(n for n in given if not any(word.startswith("byval") for word in call.parameter_attributes[n]))
        if not given or (call_effect(call) is Effect.MEMORY_COPY and 0 not in given):
            return
        if not isinstance(function, Function) or function.is_declaration or function.function_type.variadic:
            yield _Write(block, call)
            return
        key = function, given
        if key not in self.known:
            self.known[key] = None
            self.known[key] = self.writes(function, [function.arguments[n] for n in given])
        writes = self.known[key]
        ends = [b for b in function.blocks if isinstance(b.terminator, I.Return)]
        # What calls itself is not looked into.
        if writes is None or _is_certain(function, writes, ends):
            yield _Write(block, call)
        elif writes:
            yield _Write(block, call, given)

    def tell(self, writes: Sequence[_Write], flag: Value) -> None:
        """Has writes set a flag, in place."""
        for write in writes:
            instruction = write.instruction
            if write.given:
                assert isinstance(instruction, I.CallBase)
                instruction.operands[instruction.operands.index(instruction.callee)] = self._copy(
                    instruction, write.given
                )
                pass_argument(instruction, flag)
            else:
                told = I.Store(T.VOID, "store", [const_int(FLAG, 1), flag])
                locate(instruction, [told])
                write.block.instructions.insert(write.block.instructions.index(instruction), told)

    def _copy(self, call: I.CallBase, given: tuple[int, ...]) -> Function:
        function = call.callee
        assert isinstance(function, Function)
        key = function, given
        if key not in self.copies:
            same: dict[Value, Value] = {}
            copy = self.copies[key] = clone_function(
                function, f"{function.name}.telling.{len(self.module.functions)}", same
            )
            copy.prefix = ("internal", *(word for word in copy.prefix if word not in LINKAGE))
            self.module.functions[copy.name] = copy
            writes = [_in_copy(write, same) for write in self.known[key] or ()]
            self.tell(writes, add_parameter(copy, "touched"))
        return self.copies[key]


def _in_copy(write: _Write, same: dict[Value, Value]) -> _Write:
    block, instruction = same[write.block], same[write.instruction]
    assert isinstance(block, BasicBlock) and isinstance(instruction, I.Instruction)
    return _Write(block, instruction, write.given)


def _is_certain(function: Function, writes: Sequence[_Write], ends: Iterable[BasicBlock]) -> bool:
    """Does control come to one of the writes before it comes to any of the ends?"""
    dominates = Dominators(Cfg(function)).dominates
    return any(not w.given and all(dominates(w.block, end) for end in ends) for w in writes)


def is_plain(place: Value, used: Uses) -> bool:
    """Is it a variable of which nothing but loads and stores know?"""
    users = used.get(place, ())
    return isinstance(place, I.Alloca) and all(
        isinstance(u, I.Load) or (isinstance(u, I.Store) and n == 1) or callee_name(u).startswith("llvm.lifetime.")
        for u, n in users
    )
