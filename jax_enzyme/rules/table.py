"""The table of rules as one immutable value."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import types as T
from jax_enzyme.remembered import remembered
from jax_enzyme.rules import complex, instructions, intrinsics, libm
from jax_enzyme.rules.names import canonical
from jax_enzyme.rules.rule import Rule


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules of called functions by canonical name, of instructions by opcode, and of functions by `exact` symbol."""

    functions: Mapping[str, Rule]
    opcodes: Mapping[str, Rule]
    exact: Mapping[str, Rule] = field(default_factory=dict)

    def for_call(self, name: str, signature: T.FunctionType | None = None) -> Rule | None:
        """The rule of a called function under any of its names. With `signature`, a function that merely shares its
        name with the one that the rule is about (`double y0(int)`) has none."""
        rule = self._named(name)
        if rule is None or (signature is not None and not rule.accepts(signature)):
            return None
        return rule

    @remembered
    def _named(self, name: str) -> Rule | None:
        if name in self.exact:
            return self.exact[name]
        key = canonical(name, self.functions)
        return self.functions[key] if key is not None else None

    def for_opcode(self, opcode: str) -> Rule | None:
        return self.opcodes.get(opcode)

    def with_rules(self, rules: Iterable[Rule]) -> Rules:
        """A table that also holds `rules` for the functions of exactly their names; they take precedence."""
        return Rules(self.functions, self.opcodes, {**self.exact, **{rule.name: rule for rule in rules}})


@functools.cache
def standard() -> Rules:
    """The rules that come with the package."""
    opcodes = {rule.name: rule for rule in instructions.ROWS}
    functions = {rule.name: rule for rule in (*libm.ROWS, *intrinsics.ROWS, *complex.rows())}
    # Some functions are instructions under another name (`__nv_fmul_rn`): `names` calls them `%fmul`, as no user can.
    return Rules({**functions, **{f"%{name}": rule for name, rule in opcodes.items()}}, opcodes)
