"""Rules that a user gives for functions, whose source may be there or not. Where it is, the rule wins: the body is what
runs, and is kept from the engine (`!je.withheld`, see `transform.withheld`).

They travel inside the program, so that they belong to its identity wherever it goes: a module names them in
`!je.rules`, and a function with a formula is declared to be pure (same result for same arguments, no other effect).

    je.rule("my_sinc", "(cos(x0)*x0 - sin(x0))/(x0*x0)")     !je.rules = !{!7, !8}
    je.inactive("log_message")                               !7 = !{!"rule", !"my_sinc", !"(cos(x0) * x0 - ..."}
                                                             !8 = !{!"inactive", !"log_message"}
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import SignatureError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import add_node, resolve
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.metadata import MDNode, MDString
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.reader import parse as parse_module
from jax_enzyme.ir.values import Constant, ConstantAggregate, Poison
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.blas.table import routine as routine_named
from jax_enzyme.rules.declare import PURE
from jax_enzyme.rules.effects import effect
from jax_enzyme.rules.expr import Call, Expr, children, functions, parse, text
from jax_enzyme.rules.pairs import attribute, user_routine
from jax_enzyme.rules.rule import ANYTHING, Rule, smooth, zero
from jax_enzyme.rules.table import Rules, standard
from jax_enzyme.rules.text import writers_of_text

METADATA = "je.rules"
WITHHELD = "je.withheld"
_KEEP = "llvm.compiler.used"
_SYMBOL = re.compile(r"[-\w$.]+")

_INSTRUCTIONS = ("sqrt", "fabs", "copysign")
"""Functions whose calls compilers replace in any case, in all three types."""


@dataclass(frozen=True)
class UserRule:
    """`partials` has a formula per argument, empty for an integer; None says that no derivative passes at all. Or
    `signature` says what the function does with its arguments, and `derivatives` are the symbols of functions."""

    symbol: str
    partials: tuple[str, ...] | None
    signature: str = ""
    derivatives: tuple[str, str, str] | None = None
    standard: bool = False
    """The package has a rule for this name, which wins over the source's body."""

    @property
    def row(self) -> Rule:
        """As a row of the table."""
        if self.partials is None:
            return zero(self.symbol, "declared inactive", ANYTHING, source="the user")
        return smooth(self.symbol, *(p or None for p in self.partials), source="the user")


def rule(
    symbol: str,
    *partials: str | float | None,
    signature: str = "",
    jvp: str | None = None,
    vjp: tuple[str, str] | None = None,
    standard: bool = False,
) -> UserRule:
    """A rule for a function of numbers: the formula of one partial derivative per argument, None for an integer. Where
    the source defines the function, its body is what runs, and the rule is the derivative.

        >>> sinc = je.rule("my_sinc", "(cos(x0) * x0 - sin(x0)) / (x0 * x0)")
        >>> source = "double my_sinc(double); double f(double x) { return 2 * my_sinc(x); }"
        >>> f = je.kernel(source, "f", "x: f64 -> f64", lang="c", rules=(sinc,))

    A formula is a Python expression of the arguments `x0`, `x1` ..., the result `y`, numbers, `pi`, choices
    (`1 if x0 > 0 else 0`) and functions: those of math.h by their names there, or others that the process has, of
    numbers of the same type. The function gives the same result for the same arguments and has no other effect.
    `symbol` is its name in object code.

    For a function of arrays: its `signature`, and functions that the same source defines, or the process has, for
    forward mode and for the two sweeps of reverse mode (`rules.pairs` tells what they get and give):

        >>> signature = "n: i32, x: f64[n], out y: f64[n]"
        >>> solve = je.rule("solve", signature=signature, jvp="solve_jvp", vjp=("solve_forward", "solve_reverse"))

    For a function that the source defines and the package has a rule for by its name (`docs/rules.md`, `docs/blas.md`),
    `standard=True` takes that rule in place of the body:

        >>> product = je.rule("dgemm_", standard=True)
    """
    if standard:
        if partials or signature or jvp or vjp:
            raise SignatureError(
                f"the rule for `{symbol}` is the package's own, and one besides", remedy="leave one out"
            )
        return UserRule(_checked(symbol), (), standard=True)
    if signature or jvp or vjp:
        if partials or not (signature and jvp and vjp):
            raise SignatureError(
                f"the rule for `{symbol}` is neither of formulas nor of functions",
                remedy="formulas alone, or signature=, jvp= and vjp= together",
            )
        derivatives = (_checked(jvp), _checked(vjp[0]), _checked(vjp[1]))
        user_routine(symbol, signature, derivatives)
        return UserRule(_checked(symbol), (), signature, derivatives)
    if not partials:
        raise SignatureError(f"the rule for `{symbol}` has no formula", remedy="one for each of its arguments")
    return UserRule(_checked(symbol), tuple("" if p is None else _formula(symbol, p, len(partials)) for p in partials))


def may_have_functions(module: Module) -> bool:
    """Whether functions of a user's rules may be in a module, which do with cotangents what they like."""
    return _KEEP in module.globals


def inactive(symbol: str) -> UserRule:
    """Says that no derivative passes through a function: its result is constant, and it writes no number that one
    depends on. It may do anything else, and may run again where a derivative repeats the kernel.

        >>> source = "int rand(void); double f(double x) { return x * x + 0 * rand(); }"
        >>> f = je.kernel(source, "f", "x: f64 -> f64", lang="c", rules=(je.inactive("rand"),))
    """
    return UserRule(_checked(symbol), None)


def _checked(symbol: object) -> str:
    if not isinstance(symbol, str) or not _SYMBOL.fullmatch(symbol):
        raise SignatureError(f"{symbol!r} is no symbol", remedy="give the name that the function has in object code")
    return symbol


def _formula(symbol: str, given: str | float, count: int) -> str:
    formula = str(given)
    try:
        parsed: Expr = parse(formula)
    except (SyntaxError, ValueError) as error:
        raise SignatureError(f"the rule for `{symbol}` does not parse: {error}", formula) from error
    known = {"y", *(f"x{i}" for i in range(count))}
    if strange := sorted(parsed.variables - known):
        raise SignatureError(
            f"the rule for `{symbol}` reads {', '.join(strange)}", formula, f"known are {', '.join(sorted(known))}"
        )
    _check_calls(symbol, formula, parsed)
    return text(parsed)


def _check_calls(symbol: str, formula: str, part: Expr) -> None:
    """The functions that are known are called with as many arguments as they take."""
    if isinstance(part, Call):
        row = standard().functions.get(part.function)
        if row is not None and row.arity != len(part.arguments):
            raise SignatureError(
                f"the rule for `{symbol}` calls {part.function} with {len(part.arguments)} arguments",
                formula,
                f"{part.function} takes {row.arity}",
            )
    for child in children(part):
        _check_calls(symbol, formula, child)


# -- into a program --------------------------------------------------------------------------------------------------


def attached(ir: str, rules: Sequence[UserRule]) -> str:
    """The text of a module with rules, which are checked, for functions that it calls. SignatureError for those that do
    not fit."""
    if not rules:
        return ir
    module = parse_module(ir)
    called = frozenset[str]().union(*(functions(parse(p)) for r in rules for p in r.partials or () if p))
    _keep(module, sorted(called))
    for given in rules:
        function = _function(module, given, called)
        if function is not None and function.blocks:
            _withhold(module, function)
        if given.standard:
            continue
        if given.derivatives is not None:
            assert function is not None
            _attach_pair(module, function, given.signature, given.derivatives)
            continue
        if given.partials is not None and function is not None:
            _check_type(given, function.function_type)
            if function.is_declaration:
                make_pure(function)
        words = ("inactive",) if given.partials is None else ("rule",)
        _list(module, METADATA, *words, given.symbol, *(given.partials or ()))
    return to_text(module)


def make_pure(function: Function) -> None:
    """Says that a declaration is of a function of numbers alone."""
    function.attributes = (*function.attributes, *(w for w in PURE if w not in function.attributes))


def _list(module: Module, name: str, *words: str) -> None:
    """Adds words to what a module has under a name."""
    node = MDNode(operands=[MDString(w) for w in words])
    module.named_metadata.setdefault(name, []).append(add_node(module, node))


def _withhold(module: Module, function: Function) -> None:
    """Marks a definition as one that the engine does not see. Where it was inlined, there is nothing left to mark."""
    done = (
        "inlined it"
        if _is_inlined(module, function)
        else "removed an argument"
        if loses_arguments(module, function)
        else ""
    )
    if done:
        raise SignatureError(
            f"the rule for `{function.name}` comes too late: the source defines it, and the compiler has {done}",
            remedy="forbid that (`#[inline(never)]` in Rust), or compile it by itself",
        )
    function.prefix = tuple(w for w in function.prefix if w not in LINKAGE)
    function.attributes = tuple(w for w in function.attributes if not w.startswith("comdat"))
    _list(module, WITHHELD, function.name)


def withheld(module: Module) -> tuple[str, ...]:
    """The functions whose bodies the engine does not see."""
    nodes = [resolve(module, reference) for reference in module.named_metadata.get(WITHHELD, ())]
    return tuple(o.text for node in nodes if node for o in node.operands if isinstance(o, MDString))


def withholds(ir: str) -> bool:
    """Whether there are any, in the text of a module."""
    return f"!{WITHHELD} = " in ir


def loses_arguments(module: Module, function: Function) -> bool:
    """Whether a call of the function passes nothing where it has a parameter: what a body does not read, a compiler
    need not pass, but a rule may read it."""
    return any(
        isinstance(call, CallBase) and call.callee is function and any(isinstance(a, Poison) for a in call.arguments)
        for caller in module.functions.values()
        for call in caller.instructions()
    )


def _is_inlined(module: Module, function: Function) -> bool:
    own = next((node for kind, node in function.metadata if kind == "dbg"), None)
    subprogram = resolve(module, own) if own is not None else None
    return subprogram is not None and any(
        node.kind == "DILocation" and node.get("inlinedAt") is not None and _subprogram(module, node) is subprogram
        for node in module.metadata.values()
    )


def _subprogram(module: Module, node: MDNode) -> MDNode | None:
    """What a location is in."""
    scope = resolve(module, node.get("scope"))
    while scope is not None and scope.kind != "DISubprogram":
        scope = resolve(module, scope.get("scope"))
    return scope


def check_rules(rules: object) -> None:
    """SignatureError for what is no sequence of rules, one for a function at most."""
    each = cast("Sequence[object]", rules) if isinstance(rules, tuple | list) else (None,)
    given: set[str] = set()
    for rule in each:
        if not isinstance(rule, UserRule):
            raise SignatureError(
                f"rules= is given {rule if isinstance(rules, tuple | list) else rules!r}",
                remedy="a tuple of je.rule(...) and je.inactive(...)",
            )
        if rule.symbol in given:
            raise SignatureError(f"there are two rules for `{rule.symbol}`", remedy="leave one of them out")
        given.add(rule.symbol)


def _function(module: Module, given: UserRule, called: frozenset[str]) -> Function | None:
    """The function that a rule is about; None for one that only formulas call."""
    function = module.functions.get(given.symbol)
    if function is None and given.derivatives is None and given.symbol in called:
        _check_new(given, None)
        return None
    if function is None:
        declared = [n for n, f in module.functions.items() if f.is_declaration and not n.startswith("llvm.")]
        near = difflib.get_close_matches(given.symbol, declared) or declared[:8]
        others = f"it calls {', '.join(f'`{n}`' for n in near)}" if near else "it calls no other functions"
        raise SignatureError(f"there is a rule for `{given.symbol}`, which the source does not call", remedy=others)
    if given.standard:
        if function.is_declaration or not _has_standard(given.symbol, function.function_type):
            what = "the source does not define it" if function.is_declaration else "the package has none"
            raise SignatureError(f"the rule for `{given.symbol}` cannot be the package's own: {what}")
        return function
    if function.is_declaration:
        _check_new(given, function.function_type)
    elif given.symbol.removesuffix("f").removesuffix("l") in _INSTRUCTIONS:
        raise SignatureError(
            f"calls of `{given.symbol}` are an instruction, whoever defines it", remedy="give the function another name"
        )
    return function


def _check_new(given: UserRule, type_: T.FunctionType | None) -> None:
    known = standard().for_call(given.symbol, type_)
    if given.partials is not None and (effect(given.symbol) is not None or (known and known.refusal is None)):
        raise SignatureError(f"`{given.symbol}` has a rule already", remedy="give the function another name")


def _has_standard(symbol: str, type_: T.FunctionType) -> bool:
    known = standard().for_call(symbol, type_)
    return (known is not None and known.refusal is None) or routine_named(symbol, type_) is not None


def _attach_pair(module: Module, function: Function, signature: str, derivatives: tuple[str, str, str]) -> None:
    routine = user_routine(function.name, signature, derivatives)
    if not routine.accepts(function.function_type):
        raise SignatureError(
            f"the rule for `{function.name}` does not fit the function, which is declared as {function.function_type}",
            signature,
            "the signature lists the function's parameters, all of them, in order",
        )
    function.attributes = (*function.attributes, attribute(signature, derivatives))
    _keep(module, derivatives)


def _keep(module: Module, names: Sequence[str]) -> None:
    """Nothing calls these functions of the source yet: LLVM would remove them."""
    kept: list[Constant] = [f for n in names if (f := module.functions.get(n)) is not None and f.blocks]
    present = module.globals.get(_KEEP)
    if present is not None and isinstance(present.initializer, ConstantAggregate):
        kept = [*present.initializer.elements, *kept]
    if kept:
        kind = T.ArrayType(len(kept), T.PTR)
        listed = ConstantAggregate(kind, kept)
        section = ('section "llvm.metadata"',)
        module.globals[_KEEP] = GlobalVariable(T.PTR, kind, listed, prefix=("appending",), suffix=section, name=_KEEP)


def _check_type(given: UserRule, type_: T.FunctionType) -> None:
    if not given.row.accepts(type_):
        raise SignatureError(
            f"the rule for `{given.symbol}` does not fit the function, which is declared as {type_}",
            f"partials: {', '.join(p or 'None' for p in given.partials or ())}",
            "one formula for every floating-point argument, None for every integer; no pointers",
        )


# -- out of a module -------------------------------------------------------------------------------------------------


def rules_of(module: Module) -> Rules:
    """The table of rules that holds for a module: the package's, and its own."""
    return _table(tuple(_rows(module)))


def names_inactive(module: Module) -> bool:
    """Whether the user says of any function that no derivative passes it."""
    return any(rule.partials is None and rule.derivatives is None for rule in _own_rows(module))


def _rows(module: Module) -> Iterator[UserRule]:
    yield from map(inactive, writers_of_text(name for name, f in module.functions.items() if f.is_declaration))
    yield from _own_rows(module)


def _own_rows(module: Module) -> Iterator[UserRule]:
    for reference in module.named_metadata.get(METADATA, ()):
        node = resolve(module, reference)
        words = [o.text for o in node.operands if isinstance(o, MDString)] if node is not None else []
        if len(words) >= 2:
            yield UserRule(words[1], tuple(words[2:]) if words[0] == "rule" else None)


@lru_cache(maxsize=64)
def _table(rows: tuple[UserRule, ...]) -> Rules:
    """One table for equal rules: plans are remembered by it."""
    return standard().with_rules(row.row for row in rows) if rows else standard()
