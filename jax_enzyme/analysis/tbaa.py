"""What the type-based alias metadata of C and C++ tells about the types of memory accesses.

!tbaa           what one load or store accesses: `double`, `int`, `any pointer` ...
!tbaa.struct    the members of what a copy copies: offset, size and type of each
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cache
from itertools import pairwise

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.marks import TOLD, is_told
from jax_enzyme.ir.metadata import MDConstant, MDNode, MDString, MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.nodes import of_kind
from jax_enzyme.ir.values import int_value

_FLOATS = {"double": T.DOUBLE, "float": T.FLOAT, "_Float16": T.HALF, "__bf16": T.BFLOAT}
_INTEGERS = frozenset(
    "bool|short|int|long|long long|wchar_t|char16_t|char32_t|__int128|_ZTSSt4byte|vtable pointer".split("|")
)
_SHORT = _FLOATS.keys() - {"double"}
_CHAIN = (*sorted(_INTEGERS - {"vtable pointer"}), *_FLOATS)
_WORDS = ("long", "long long")
"""Integers as long as a pointer."""
_POINTER, _CHAR = "any pointer", "omnipotent char"
_LIBRARY = ("_ZNSt3__1", "_ZNKSt3__1")
"""How the names of functions of clang's C++ library begin."""

FORTRAN_DATA = " data/"
"""Between what kind of variable flang has named, and its name; behind a blank, the type that `frontends.fortran_types`
found for it."""
FORTRAN_KINDS: Mapping[T.Type, str] = {T.DOUBLE: "double", T.FLOAT: "float"}
_FORTRAN_BYTES = "/bytes_"
_OF_BLOCK = " of "
_OURS = "je integer"
_MEMORY, _TAPE, _BYTES = "je memory", "je tape", "bytes"
_ZERO = MDConstant(const_int(T.I64, 0))
_TREE = MDNode(operands=[MDString("jax_enzyme")])
_INTEGER = MDNode(operands=[MDString(_OURS), _TREE, _ZERO])
_KEPT = MDNode(operands=[MDString("je integers"), _INTEGER, _ZERO])
READS_INTEGER = ("tbaa", MDNode(operands=[_INTEGER, _INTEGER, _ZERO]))
"""Says of a load that it reads an integer that our own code wrote: no number's bits, wherever in memory it lies. The
type is in a tree of its own, so that LLVM draws no conclusions from it."""


@cache
def own_access(type_: T.Type) -> tuple[str, MDNode] | None:
    """What says of an access that it is of a number or an integer of our own, and that its place is never used for
    anything else; None for other types."""
    if isinstance(type_, T.IntType):
        return READS_INTEGER
    name = next((n for n, t in _FLOATS.items() if t == type_), None)
    if name is None:
        return None
    kind = MDNode(operands=[MDString(name), _TREE, _ZERO])
    return ("tbaa", MDNode(operands=[kind, kind, _ZERO]))


def kept_access(module: Module, instruction: I.Instruction) -> list[tuple[str, MDValue]]:
    """What an access says of its type, for a copy of it in a derivative: the name alone, in a tree of its own. A
    derivative accesses memory in other orders, from which LLVM is to draw no conclusions. And that it is told."""
    told: list[tuple[str, MDValue]] = [(TOLD, MDNode())] if is_told(instruction) else []
    name = _accessed_name(module, dict(instruction.metadata).get("tbaa"))
    if name == _OURS:
        return [READS_INTEGER, *told]
    if name:
        return [_named_access(name, _MEMORY, member=is_member(module, instruction)), *told]
    kind = copied_type(module, instruction) if isinstance(instruction, I.CallBase) else None
    return [*number_access(kind), *told] if kind is not None else told


def number_access(type_: T.Type) -> list[tuple[str, MDValue]]:
    """What says of an access that it is of numbers of this type, in the same manner; nothing for other types."""
    return _of_numbers(type_, _MEMORY)


def tape_access(type_: T.Type) -> list[tuple[str, MDValue]]:
    """The same for what is on the tape: of numbers LLVM may take that for memory that no other access touches, since
    what an access of a tape is of stays there until the tape goes, by a call. Integers may be numbers' bits."""
    return [_named_access("word", _TAPE)] if T.is_int(type_) else _of_numbers(type_, _TAPE)


def shadow_access(type_: T.Type) -> list[tuple[str, MDValue]]:
    """The same for what is in a shadow, which is memory of the program's and never on the tape."""
    return number_access(type_) or [_named_access(_BYTES, _MEMORY)]


def is_of_shadow(module: Module, access: I.Instruction) -> bool:
    """Whether an access is of what a shadow has beside numbers."""
    return _accessed_name(module, dict(access.metadata).get("tbaa")) == _BYTES


def _of_numbers(type_: T.Type, where: str) -> list[tuple[str, MDValue]]:
    kind = T.scalar(type_)
    return [_named_access(name, where) for name, known in _FLOATS.items() if known == kind]


@cache
def _named_access(name: str, where: str, *, member: bool = False) -> tuple[str, MDNode]:
    """Both kinds of memory lie below one type of the name, which is what LLVM says of a copy from one to the other;
    integers of the program's, below that of our own integers, which a copy of the one as the other is of. A `member`
    lies below an integer of its name, as in `let_numbers_meet`."""
    tree = _KEPT if name in _INTEGERS else MDNode(operands=[MDString(f"jax_enzyme {name}")])
    both = MDNode(operands=[MDString(name), tree, _ZERO])
    kept = MDNode(operands=[MDString(where), both, _ZERO])
    kind = MDNode(operands=[MDString(name), kept, _ZERO])
    if member:
        kind = MDNode(operands=[MDString(name), kind, _ZERO])
    return ("tbaa", MDNode(operands=[kind, kind, _ZERO]))


def draw_no_conclusions(module: Module) -> None:
    """Says nothing of accesses of integers in C and C++, in place, and of numbers what they are, each kind in a tree of
    its own: numbers may be moved as integers or as other numbers, and LLVM tells no memory apart by such types. What is
    copied as an integer may be anything (`char`)."""
    made: dict[MDValue, MDNode] = {}

    def copied(tag: MDValue) -> MDValue:
        node = resolve(module, tag) if _accessed_name(module, tag) in _INTEGERS else None
        kind = resolve(module, node.operands[1]) if node is not None else None
        if kind is None or len(kind.operands) < 2:
            return tag
        above = kind.operands[1]
        return made.setdefault(above, MDNode(operands=[above, above, _ZERO]))

    for function in module.functions.values():
        for instruction in function.instructions():
            found = dict(instruction.metadata)
            name = _accessed_name(module, found.get("tbaa"))
            if name in _INTEGERS or name in _FLOATS:
                kept = [_named_access(name, _MEMORY)] if name in _FLOATS else []
                instruction.metadata = [(k, v) for k, v in instruction.metadata if k != "tbaa"] + kept
            members = resolve(module, found.get("tbaa.struct"))
            if members is not None:
                tags = [copied(v) if place % 3 == 2 else v for place, v in enumerate(members.operands)]
                instruction.metadata = [
                    (k, MDNode(operands=tags) if k == "tbaa.struct" else v) for k, v in instruction.metadata
                ]


def let_numbers_meet(module: Module) -> None:
    """Lets LLVM draw no conclusions from the types of numbers and integers in C and C++, in place: compilers have long
    taken programs that move and change numbers as integers as they are meant. Each type is put below the next of a
    chain, so that any two of them may have a place in common. Pointers lie below integers of their length, which may be
    pointers too, and apart from all else; integers that the C++ library accesses are none, since it passes the counts
    of lists by reference. Numbers in different members of structures stay apart, and integers may be either of them. An
    integer that is a member itself, and no element of an array, of a structure that holds other things as well has a
    type of its own in the chain, of the same name (`is_member`): a structure of integers alone may stand for the words
    of a number. Of structures that end in an array of no length clang's metadata tells nothing, and their addresses do.
    A number at a distance from a member, as in `(&v.x)[i]`, may be in another one, though clang calls it the member. A
    character that is a member may be anything, as others may, but for those in the C++ library's strings.

        before    char <- int, char <- long, char <- double, char <- any pointer
        after     char <- long <- int <- int <- long <- long <- double, long <- any pointer
    """
    below: dict[MDValue, dict[str, MDNode]] = {}
    members, counts = dict[MDValue, MDNode](), dict[MDValue, MDNode]()
    for _, node in list(of_kind(module.metadata, "")):
        match node.operands:
            case [MDString(text=name), parent, _] if name in (*_CHAIN, _POINTER) and _is_char(module, parent):
                chain = below.get(parent)
                if chain is None:
                    chain = below[parent] = _chain(parent, members, counts)
                node.operands[:] = chain[name].operands
                if name in _INTEGERS:
                    members[node], counts[node] = members[chain[name]], counts[chain[name]]
            case _:
                pass
    made: dict[MDValue, MDNode] = {}
    layout = DataLayout(module)
    for function in module.functions.values():
        is_of_library = function.name.startswith(_LIBRARY)
        for instruction in function.instructions():
            found = dict(instruction.metadata)
            tag = resolve(module, found.get("tbaa"))
            name = _accessed_name(module, tag) if tag is not None else ""
            moves = name in _INTEGERS or (name == _CHAR and not is_of_library)
            if tag is not None and (moves or (name in _FLOATS and _leaves_its_member(instruction))):
                base, kind = (resolve(module, node) for node in tag.operands[:2])
                if kind is None:
                    continue
                is_declared = base is not kind and not _is_made_of(module, base, _INTEGERS)
                if is_declared or (isinstance(instruction, I.Load | I.Store) and _is_addressed(layout, instruction)):
                    kind = members.get(kind, kind)
                elif is_of_library:
                    kind = counts.get(kind, kind)
                found["tbaa"] = made.setdefault(kind, MDNode(operands=[kind, kind, _ZERO]))
                instruction.metadata = [(k, found[k]) for k, _ in instruction.metadata]


def _chain(char: MDValue, members: dict[MDValue, MDNode], counts: dict[MDValue, MDNode]) -> dict[str, MDNode]:
    """The types below `char`, by their names, those of members in `members`, and in `counts` those of integers that are
    no pointers."""
    chain, above = dict[str, MDNode](), char
    for name in (*_WORDS, _POINTER):
        chain[name] = node = MDNode(operands=[MDString(name), above, _ZERO])
        above = node if name in _WORDS else above
    for name in _CHAIN:
        above = MDNode(operands=[MDString(name), above, _ZERO])
        counts[chain.setdefault(name, above)] = above
        if name in _INTEGERS:
            members[chain[name]] = above = MDNode(operands=[MDString(name), above, _ZERO])
    return chain


def _is_made_of(module: Module, structure: MDNode | None, names: Container[str]) -> bool:
    """Whether all members of a structure are scalars of such names, or structures of these."""
    name = structure.operands[0] if structure is not None and structure.operands else None
    if structure is None or not isinstance(name, MDString):
        return False
    if name.text in _FLOATS or name.text in _INTEGERS:
        return name.text in names
    members = [resolve(module, node) for node in structure.operands[1::2]]
    return bool(members) and all(_is_made_of(module, member, names) for member in members)


def _leaves_its_member(access: I.Instruction) -> bool:
    """Whether an address is computed by an index from that of a member."""
    address = access.operands[-1] if isinstance(access, I.Load | I.Store) else None
    while isinstance(address, I.GetElementPtr):
        base = address.operands[0]
        is_of_member = isinstance(base, I.GetElementPtr) and len(base.operands) > 2
        if is_of_member and int_value(address.operands[1]) != 0:
            return True
        address = base
    return False


def _is_addressed(layout: DataLayout, access: I.Load | I.Store) -> bool:
    """Whether the address of an access is that of such a member, of a structure that holds other things as well."""
    match access.operands[-1]:
        case I.GetElementPtr(operands=[_, first, index], source_type=type_) if int_value(first) == 0:
            structure, place = layout.body(type_), int_value(index)
            if not isinstance(structure, T.StructType) or place is None:
                return False
            return structure.elements[place] == I.accessed_value(access).type and not all(
                map(T.is_int, layout.kinds(structure))
            )
        case _:
            return False


def is_member(module: Module, instruction: I.Instruction) -> bool:
    """Whether an access is of an integer that is declared as a member of a structure, or of such a number that is
    shorter than a double."""
    tag = resolve(module, dict(instruction.metadata).get("tbaa"))
    base, kind = (resolve(module, node) for node in tag.operands[:2]) if tag is not None else (None, None)
    name = kind.operands[0] if kind is not None and kind.operands else None
    if kind is None or not isinstance(name, MDString) or len(kind.operands) < 2:
        return False
    if name.text in _SHORT:
        return base is not kind and not _is_made_of(module, base, _SHORT)
    above = resolve(module, kind.operands[1])
    return above is not None and above.operands[:1] == [name]


def _is_char(module: Module, kind: MDValue) -> bool:
    node = resolve(module, kind)
    name = node.operands[0] if node is not None and node.operands else None
    return isinstance(name, MDString) and name.text == _CHAR


@dataclass(frozen=True)
class Share:
    """The bytes from `first` to `last` of a COMMON block that has `size` of them: those of one variable, or of several
    that overlap where the block is declared in several ways."""

    first: int
    last: int
    size: int


@dataclass(frozen=True)
class Member:
    """Part of a structure: `type` is the type of its elements, None where the metadata does not tell (`char`)."""

    offset: int
    size: int
    type: T.Type | None


def accessed_type(module: Module, instruction: I.Instruction) -> T.Type | None:
    """The type that an access has in its source: floating, `ptr`, or the i1 that here stands for any integer."""
    return _tag_type(module, dict(instruction.metadata).get("tbaa"))


def is_certain_integer(module: Module, instruction: I.Instruction) -> bool:
    """Whether an access reads an integer that our own code wrote."""
    return _accessed_name(module, dict(instruction.metadata).get("tbaa")) == _OURS


def copied_type(module: Module, call: I.Instruction) -> T.Type | None:
    """The type of the numbers that a copy is of, where it is said to be of nothing else, as one that a loop became, or
    one of a structure of such numbers alone (a complex number); i1 for integers of our own."""
    type_ = accessed_type(module, call)
    if isinstance(type_, T.FloatType) or is_certain_integer(module, call):
        return type_
    members = copied_members(module, call) or []
    kinds = {m.type for m in members}
    if len(kinds) != 1 or not isinstance(kind := kinds.pop(), T.FloatType):
        return None
    places = sorted((m.offset, m.offset + m.size) for m in members)
    without_gaps = all(end == start for (_, end), (start, _) in pairwise([(0, 0), *places]))
    return kind if without_gaps and int_value(call.operands[2]) == places[-1][1] else None


def is_on_tape(module: Module, access: I.Instruction) -> bool | None:
    """Whether an access is one of a tape, or certainly not; None where that is not said."""
    texts = {_TAPE: True, _MEMORY: False}
    kind = _accessed_node(module, dict(access.metadata).get("tbaa"))
    for _ in range(2):  # a member lies below an integer
        kind = resolve(module, kind.operands[1]) if kind is not None and len(kind.operands) > 1 else None
        name = kind.operands[0] if kind is not None and kind.operands else None
        if isinstance(name, MDString) and name.text in texts:
            return texts[name.text]
    return None


def is_of_any_type(module: Module, instruction: I.Instruction) -> bool:
    """Whether the source says that an access may be of any type: of `char`, or of a member of a union."""
    return _accessed_name(module, dict(instruction.metadata).get("tbaa")) == _CHAR


def copied_members(module: Module, instruction: I.Instruction) -> list[Member] | None:
    """The members of what a copy copies, in order; None where that is not said."""
    node = resolve(module, dict(instruction.metadata).get("tbaa.struct"))
    if node is None or not node.operands or len(node.operands) % 3:
        return None
    members: list[Member] = []
    for index in range(0, len(node.operands), 3):
        offset, size = (_number(v) for v in node.operands[index : index + 2])
        if offset is None or size is None:
            return None
        members.append(Member(offset, size, _tag_type(module, node.operands[index + 2])))
    return members


def _accessed_name(module: Module, tag: MDValue | None) -> str:
    """The name of a tag's type, with which that starts."""
    accessed = _accessed_node(module, tag)
    name = accessed.operands[0] if accessed is not None and accessed.operands else None
    return name.text if isinstance(name, MDString) else ""


def _accessed_node(module: Module, tag: MDValue | None) -> MDNode | None:
    """A tag's type. An access tag is (base type, accessed type, offset)."""
    node = resolve(module, tag)
    return resolve(module, node.operands[1]) if node is not None and len(node.operands) > 2 else None


def is_fortran_integer(module: Module, access: I.Instruction) -> bool:
    """Whether an access is one of an integer variable of Fortran. Numbers may be copied through one all the same: a
    routine that copies integers is given arrays of numbers in old programs."""
    name = _accessed_name(module, dict(access.metadata).get("tbaa"))
    return FORTRAN_DATA in name and name.endswith(" integer")


def is_integer_of_c(module: Module, access: I.Instruction) -> bool:
    """Whether an access is one of an integer variable of C or C++."""
    return _accessed_name(module, dict(access.metadata).get("tbaa")) in _INTEGERS


def common_share(module: Module, access: I.Instruction) -> Share | None:
    """The part of a COMMON block that an access is within, as Fortran has it of an index of an array; None for an
    access of anything else."""
    return _share(_accessed_name(module, dict(access.metadata).get("tbaa")))


@cache
def _share(name: str) -> Share | None:
    head, found, tail = name.rpartition(_FORTRAN_BYTES)
    bytes_, of_block, size = tail.partition(_OF_BLOCK)
    first, to, last = bytes_.partition("_to_")
    if FORTRAN_DATA not in head or not (found and of_block and to):
        return None
    return Share(int(first), int(last), int(size.partition(" ")[0]))


def name_of_share(name: str, sizes: Mapping[str, int]) -> str:
    """The name that flang has for such a part, with the size of its block; any other name as it is."""
    block, found, _ = name.partition(FORTRAN_DATA)[2].partition(_FORTRAN_BYTES)
    return f"{name}{_OF_BLOCK}{sizes[block]}" if found and block in sizes else name


def resized_share(name: str, sizes: Mapping[str, int]) -> str:
    """Such a name with another size of its block, where there is one in `sizes`."""
    block, found, rest = name.partition(FORTRAN_DATA)[2].partition(_FORTRAN_BYTES)
    part, sized, behind = rest.partition(_OF_BLOCK)
    if not (found and sized and block in sizes):
        return name
    _, blank, type_ = behind.partition(" ")
    head = name.partition(FORTRAN_DATA)[0]
    return f"{head}{FORTRAN_DATA}{block}{_FORTRAN_BYTES}{part}{_OF_BLOCK}{sizes[block]}{blank}{type_}"


def is_equivalenced(module: Module, access: I.Instruction) -> bool:
    """Whether an access is one of memory that Fortran variables of several types share by EQUIVALENCE."""
    name = _accessed_name(module, dict(access.metadata).get("tbaa"))
    return FORTRAN_DATA in name and name.rpartition(" ")[2] not in (*FORTRAN_KINDS.values(), "integer")


def _tag_type(module: Module, tag: MDValue | None) -> T.Type | None:
    name = _accessed_name(module, tag)
    if FORTRAN_DATA in name:
        return _FLOATS.get(name.rpartition(" ")[2])
    if name in _FLOATS:
        return _FLOATS[name]
    if name == _OURS:
        return T.I1
    if "pointer" in name and name != "vtable pointer":
        return T.PTR
    if _is_pointer_chain(name) or name == "vtable pointer":
        return T.PTR
    return T.I1 if name in _INTEGERS else None


def _is_pointer_chain(name: str) -> bool:
    """`p1 double`, `p2 _ZTS4node`: pointers of one and more levels."""
    first, _, rest = name.partition(" ")
    return bool(rest) and first[:1] == "p" and first[1:].isdigit()


def _number(value: MDValue) -> int | None:
    return int_value(value.value) if isinstance(value, MDConstant) else None
