"""Buffers that start from zeros need no clearing where a function writes every item of them.

    before    clear %y                                      after    for i in 0..n:
              for i in 0..n:                                           store %v, %y[i]
                %old = load %y[i]        (of a derivative)
                store %old + %v, %y[i]

It takes a proof: the places of a buffer's stores, in all iterations of the loops around them, are all of its items, and
what is read of it is read once, right before it is written for the first time; or it is copied to before all else.
What is not proved starts from zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jax_enzyme.analysis.filling import Filling, are_all
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import zero
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.module import Function, callee_name, used_at, uses
from jax_enzyme.ir.values import Argument, int_value
from jax_enzyme.transform.rewriting import replace_values

_SETTING = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")


def without_needless_clears(function: ArrayFunction) -> ArrayFunction:
    """An array function whose loops are regular, less the clears that it does not need, in a copy of the module; the
    function itself where it needs all."""
    module, root = function.module, function.module.functions[function.symbol]
    search = _Search(root, Recurrences.of(root, module), DataLayout(module))
    buffers = list(function.buffers)
    read: list[I.Load] = []
    for index, (buffer, argument) in enumerate(zip(function.buffers, root.arguments, strict=True)):
        loads = search.filled(argument, buffer.nbytes) if buffer.zero and buffer.nbytes else None
        if loads is not None:
            read += loads
            buffers[index] = replace(buffer, zero=False)
    if not read:
        return function if buffers == list(function.buffers) else replace(function, buffers=tuple(buffers))
    module, copies = clone_with_map(module)
    root = module.functions[function.symbol]
    gone = {copies[load]: zero(load.type) for load in read}
    replace_values(root, gone)
    for block in root.blocks:
        block.instructions = [i for i in block.instructions if i not in gone]
    return replace(function, module=module, buffers=tuple(buffers))


class _Search:
    """Looks at one function."""

    def __init__(self, root: Function, facts: Recurrences, layout: DataLayout) -> None:
        self._facts = facts
        self._layout = layout
        self._users = uses(root)
        self._filling = Filling(root, facts)

    def filled(self, buffer: Argument, size: int) -> list[I.Load] | None:
        """The loads of a buffer, all of them of zeros, if its stores fill it; else None."""
        if self._is_set_before_all(buffer, size):
            return []
        accesses = self._accesses(buffer)
        if accesses is None:
            return None
        loads, stores = accesses
        sizes = [self._layout.store_size(store.operands[0].type) for store in stores]
        found = (
            self._filling.written(store.operands[1], size, self._facts.block_of[store], buffer)
            for store, size in zip(stores, sizes, strict=True)
        )
        known = [w for w in found if w is not None]
        if len(known) < len(stores) or not are_all(known, size):
            return None
        # What is read is what no other store has written before.
        once = sum(w.total for w in known) == size
        return loads if not loads or (once and all(self._precedes(load, stores) for load in loads)) else None

    def _is_set_before_all(self, buffer: Argument, size: int) -> bool:
        """Is the whole buffer copied to, or set, before anything else is done with it?"""
        users = [user for user, _ in self._users.get(buffer, ())]
        return any(
            callee_name(user).startswith(_SETTING)
            and isinstance(user, I.Call)
            and user.arguments[0] is buffer
            and int_value(user.arguments[2]) == size
            and users.count(user) == 1
            and self._filling.nest(self._facts.block_of[user]) == {}
            and all(other is user or self._facts.loops.precedes(user, other) for other in users)
            for user in users
        )

    def _accesses(self, buffer: Argument) -> tuple[list[I.Load], list[I.Store]] | None:
        """All loads and stores of a buffer whose address goes nowhere else."""
        loads: list[I.Load] = []
        stores: list[I.Store] = []
        for user, index, _ in used_at(buffer, self._users):
            match user:
                case I.Load() if I.is_plain(user):
                    loads.append(user)
                case I.Store() if index == 1 and I.is_plain(user):
                    stores.append(user)
                case _:
                    return None
        return loads, stores

    def _precedes(self, load: I.Load, stores: Sequence[I.Store]) -> bool:
        """Whether a load is of what one of the stores writes next, in the same block."""
        block = self._facts.block_of[load]
        for store in stores:
            same = store.operands[1] is load.operands[0] and store.operands[0].type == load.type
            if same and self._facts.block_of[store] is block:
                return self._facts.loops.precedes(load, store)
        return False
