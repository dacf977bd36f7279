"""What Fortran says of its arguments and flang does not hand on: which of them a procedure may not write to, which
have nothing for it to read, how large arrays are, where that is not a number, and of which class an object is.

    real(8), intent(in) :: x(m, n)        !6 = distinct !DISubprogram(name: "k", ..., annotations: !90)
    real(8), intent(out) :: y(0:n)        !90 = !{!91, !92, !93, !94}
                                          !91 = !{!"je.intent.in", !"x"}
                                          !92 = !{!"je.intent.out", !"y"}
                                          !93 = !{!"je.extents", !"x", !"m", !"n"}
                                          !94 = !{!"je.extents", !"y", !"n+1"}
    real(8) a(lda, *)                     !{!"je.extents", !"a", !"lda", !"*"}
    class(spring) :: s                    !{!"je.class", !"s", !"_QMmEXdtXspring"}
                                          @je.comes_with.k = weak_odr constant [1 x ptr] [ptr @_QMmEXdtXspring]

The text is read from the line on that debug information gives for a procedure, as far as its declarations are plain:
what is not understood is left open.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import add_node, debug_node
from jax_enzyme.ir.linking import COMES_WITH
from jax_enzyme.ir.metadata import MDNode, MDString, MDValue
from jax_enzyme.ir.module import GlobalVariable, Module
from jax_enzyme.ir.values import ConstantAggregate, Undef
from jax_enzyme.transform.prototype import ANY, CLASSES, EXTENTS, INTENTS

_HEAD = re.compile(r"\b(subroutine|function)\s+(\w+)\s*(\(([^)]*)\))?(.*\bresult\s*\(\s*(\w+))?")
_INTERFACE = re.compile(r"(end\s*|abstract\s+)?interface\b")
_END = re.compile(r"contains$|end\s*(subroutine|function|procedure)?\s*\w*$")
_INTENT = re.compile(r"intent\s*\(\s*(in\s*out|inout|in|out)\s*\)")
_ELSEWHERE = re.compile(r"\b(pointer|type\s*\(|class\s*\()")
"""Arguments that may lead to other memory, where a procedure may write or read."""
_CLASS = re.compile(r"class\s*\(\s*(\w+)\s*\)")
_IN_A_DESCRIPTOR = re.compile(r"\b(pointer|allocatable|dimension|value)\b")
_TYPE = "EXdtX"
"""What stands between the scope of a derived type and its name, in the symbol of its description."""
_DECLARES = re.compile(
    r"(real|double\s*precision|double\s*complex|complex|integer|logical|dimension)\b"
    r"(\s*\*\s*\d+|(?<!dimension)\s*\([^()]*(\([^()]*\)[^()]*)*\))?\s*"
)
_DIMENSION = re.compile(r"\bdimension\s*\(")
_PLAIN = re.compile(r"\w+([+*-]\w+)*")
"""An extent that a signature has words for: sums and products of arguments and numbers."""


def note_arguments(module: Module, text: str, *, fixed: bool) -> None:
    """Adds what the text of a source says of the arguments of its procedures to their debug information, in place."""
    lines = text.lower().splitlines()
    types = list(_described(module))
    for function in list(module.functions.values()):
        subprogram = debug_node(module, function.metadata)
        name, line = (None, None) if subprogram is None else (subprogram.string("name"), subprogram.number("line"))
        if subprogram is None or name is None or not line:
            continue
        symbol = subprogram.string("linkageName") or name
        notes: list[MDNode] = []
        needed: dict[str, GlobalVariable] = {}
        for kind, *said in _notes(lines, name, line, fixed):
            if kind == CLASSES:
                described = _description(types, said[1], symbol)
                if described is None:
                    continue
                said[1] = described.name
                needed[described.name] = described
            notes.append(_tuple(MDString(word) for word in (kind, *said)))
        if notes:
            subprogram.fields.append(("annotations", add_node(module, _tuple(add_node(module, n) for n in notes))))
        if needed:
            _keep(module, symbol, list(needed.values()))


def descriptions(symbols: Collection[str], described: Collection[str], text: str, *, fixed: bool) -> frozenset[str]:
    """Of the symbols of `described` those that describe the types of arguments of procedures which are called as some
    in `symbols`: nothing but the text says that they belong together."""
    known: dict[str, list[str]] = {}
    for symbol in described:
        if _TYPE in symbol:
            known.setdefault(symbol.rpartition(_TYPE)[2], []).append(symbol)
    if not known:
        return frozenset()
    wanted = {spelling(symbol).name for symbol in symbols}
    lines = text.lower().splitlines()
    heads = ((head[2], line) for line, code in enumerate(lines, 1) if (head := _HEAD.search(code)))
    notes = (note for name, line in heads if name in wanted for note in _notes(lines, name, line, fixed))
    return frozenset(symbol for kind, *said in notes if kind == CLASSES for symbol in known.get(said[1], ()))


def _tuple(operands: Iterable[MDValue]) -> MDNode:
    return MDNode(operands=list(operands))


def _described(module: Module) -> Iterator[tuple[str, GlobalVariable]]:
    """The derived types of which there may be objects, by name, with their descriptions: an abstract one's does not say
    which procedures are bound to it."""
    for symbol, variable in module.globals.items():
        name = symbol.rpartition(_TYPE)[2]
        match variable.initializer:
            case ConstantAggregate(elements=[first, *_]) if _TYPE in symbol and name.isidentifier():
                if not isinstance(first, Undef):
                    yield name, variable
            case _:
                pass


def _description(types: list[tuple[str, GlobalVariable]], name: str, symbol: str) -> GlobalVariable | None:
    """The description of a type by its name: that of the procedure's own module, or the only one."""
    found = [described for type_, described in types if type_ == name]
    own = [described for described in found if symbol.startswith(described.name.partition(_TYPE)[0] + "P")]
    return own[0] if len(own) == 1 else found[0] if len(found) == 1 else None


def _keep(module: Module, symbol: str, needed: list[GlobalVariable]) -> None:
    """Keeps the descriptions of types as long as the procedure is wanted for itself."""
    name, kind = COMES_WITH + symbol, T.ArrayType(len(needed), T.PTR)
    listed = ConstantAggregate(kind, list(needed))
    module.globals[name] = GlobalVariable(T.PTR, kind, listed, True, ("weak_odr",), name=name)


def _notes(lines: list[str], name: str, line: int, fixed: bool) -> list[tuple[str, ...]]:
    """What is said of the arguments of a procedure: what it is, of which of them, and more."""
    first, *statements = _specification(lines, name, line, fixed) or ("",)
    head = _HEAD.search(first)
    if head is None:
        return []
    arguments = [*(head[4] or "").replace(" ", "").split(","), head[6] or head[2]]
    extents = _extents(statements, arguments)
    return [
        *((INTENTS[intent], ",".join(names)) for intent, names in _intents(statements).items()),
        *((EXTENTS, array, *bounds) for array, bounds in extents.items()),
        *((CLASSES, variable, of) for variable, of in _classes(statements, arguments)),
    ]


def _classes(statements: list[str], arguments: list[str]) -> Iterator[tuple[str, str]]:
    """The arguments that are one object each, of a class, with the class: neither allocatable nor pointers."""
    for statement in statements:
        if not (found := _CLASS.match(statement)):
            continue
        attributes, separator, declared = statement[found.end() :].partition("::")
        if not separator:
            attributes, declared = "", attributes
        for variable, bounds in () if _IN_A_DESCRIPTOR.search(attributes) else _declared(declared):
            if variable in arguments and bounds is None:
                yield variable, found[1]


def _specification(lines: list[str], name: str, line: int, fixed: bool) -> list[str]:
    """The statements of a procedure, its head first, without those of the interfaces in it and of the procedures that
    it contains."""
    statements = _statements(lines[line - 1 :], fixed)
    found = [next(statements, "")]
    if not re.search(rf"\b(subroutine|function)\s+{name}\b", found[0]):
        return []
    nested = 0
    for statement in statements:
        if interface := _INTERFACE.match(statement):
            nested += -1 if (interface[1] or "").startswith("end") else 1
        elif not nested and _END.match(statement):
            break
        elif not nested:
            found.append(statement)
    return found


def _intents(statements: list[str]) -> dict[str, list[str]]:
    """The arguments of a procedure by their intents, those of `INTENTS`."""
    found: dict[str, set[str]] = {}
    for statement in statements:
        if (intent := _INTENT.search(statement)) and "::" in statement:
            attributes, _, declared = statement.partition("::")
            for variable, _ in _declared(declared):
                found.setdefault(variable, set()).add("other" if _ELSEWHERE.search(attributes) else intent[1])
    by_intent = {intent: [v for v, intents in found.items() if intents == {intent}] for intent in INTENTS}
    return {intent: names for intent, names in by_intent.items() if names}


def _extents(statements: list[str], arguments: list[str]) -> dict[str, list[str]]:
    """How large arrays are in each direction, where the arguments of the procedure say it."""
    found: dict[str, set[str]] = {}
    for statement in statements:
        if not (declares := _DECLARES.match(statement)):
            continue
        attributes, separator, declared = statement.partition("::")
        of_all = None
        if not separator:
            declared = statement[declares.end() :]
        elif dimension := _DIMENSION.search(attributes):
            of_all = _inside(attributes[dimension.end() :])
        for variable, bounds in _declared(declared):
            if variable in arguments and (said := bounds or of_all) is not None:
                found.setdefault(variable, set()).add(said)
    sizes = {
        array: [_extent(bound, arguments) for bound in _listed(bounds)]
        for array, (bounds, *others) in found.items()
        if not others
    }
    return {
        array: [e for e in (*extents, last) if e]
        for array, (*extents, last) in ((a, _to_the_end(e)) for a, e in sizes.items() if e)
        if all(extents) and last and (extents or last != ANY)
    }


def _to_the_end(extents: list[str | None]) -> list[str | None]:
    """In programs that are older than `a(lda, *)`, `a(lda, 1)` means that."""
    return [*extents[:-1], ANY] if extents[-1] == "1" else extents


def _extent(bound: str, arguments: list[str]) -> str | None:
    """How large a direction with this bound, or these two, is; None where that is not plain."""
    least, separator, most = bound.replace(" ", "").rpartition(":")
    if bound.strip() == ANY:
        return ANY
    if not _PLAIN.fullmatch(most) or (separator and not least.lstrip("-").isdigit()):
        return None
    if any(word not in arguments and not word.isdigit() for word in re.findall(r"\w+", most)):
        return None
    more = 1 - int(least) if separator else 0
    return f"{most}{more:+}" if more else most


def _statements(lines: list[str], fixed: bool) -> Iterator[str]:
    """The statements, in lower case, without comments; what continues is joined."""
    current = ""
    for line in lines:
        if fixed and line[:1] in ("c", "*", "d"):
            continue
        code = line.partition("!")[0].rstrip()
        if not code.strip() or code.startswith("#"):
            continue
        goes_on = bool(fixed and code[:5].strip() == "" and code[5:6].strip(" 0")) or current.endswith("&")
        if goes_on:
            current = current.removesuffix("&") + (code[6:] if fixed else code.strip().removeprefix("&"))
            continue
        if current:
            yield current.strip()
        current = code[6:] if fixed else code.strip()
    if current:
        yield current.strip()


def _declared(declared: str) -> Iterator[tuple[str, str | None]]:
    """The variables of a declaration, each with what stands in brackets behind it."""
    for item in _listed(declared):
        if found := re.match(r"\s*(\w+)\s*(\()?", item):
            yield found[1], _inside(item[found.end() :]) if found[2] else None


def _inside(text: str) -> str:
    """What stands before the bracket that closes."""
    depth = 1
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[:index]
    return text


def _listed(text: str) -> Iterator[str]:
    """What commas part, but those in brackets."""
    depth = 0
    item = ""
    for character in f"{text},":
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield item
            item = ""
        else:
            item += character
