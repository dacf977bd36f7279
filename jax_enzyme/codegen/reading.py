"""The module of a program, read once: who makes a kernel looks at it, and its first call takes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from jax_enzyme.codegen.memo import Memo
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import reader
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Module
from jax_enzyme.transform.retyping import literal_structures

_read: Memo[Module] = Memo(1)
_lookers: Counter[str] = Counter()
_lock = Lock()


@contextmanager
def looked_at(program: Program) -> Generator[Module]:
    """The module of a program, with literal structures. Not to be changed: others look at it as well."""
    with _lock:
        _lookers[program.key] += 1
    try:
        yield _read.get(program.key, lambda: _parsed(program))
    finally:
        with _lock:
            _lookers[program.key] -= 1


def taken(program: Program) -> Module:
    """The same for one who changes it: nobody asks for it soon. A copy where others are looking at it right now."""
    with looked_at(program) as module:
        with _lock:
            alone = _lookers[program.key] == 1
            _read.drop(program.key)
        return module if alone else clone(module)


def _parsed(program: Program) -> Module:
    module = reader.parse_printed(program.ir)
    literal_structures(module)
    return module
