"""The functions of MPI whose derivatives the package has, and what each does to its arguments.

A rule is C code in this folder; this table is what analyses read. Which rule a call has depends on its arguments: on
the datatype, which says what numbers travel, on the operation, and on whether the buffer is `MPI_IN_PLACE`. So a call
has a row only where these are constants, in one of the three binary interfaces that there are (`abi.h`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TypeVar

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantExpr, ConstantInt, GlobalValue, Value, int_value
from jax_enzyme.rules.blas.table import PREFIX, Kind, Parameter, Result, Routine

Row = TypeVar("Row")

MPI = "MPI_"

# A parameter by what it is: F numbers, I integers in memory, t datatype, o operation, v any other value; with `+`, it
# is written as well. Operations are those that there are rules for.
_ROWS = """
Send              out:F count:v type:t to:v tag:v comm:v
Ssend             out:F count:v type:t to:v tag:v comm:v
Rsend             out:F count:v type:t to:v tag:v comm:v
Recv              in:F+ count:v type:t from:v tag:v comm:v status:I+
Sendrecv          out:F count:v type:t to:v tag:v in:F+ count:v type:t from:v tag:v comm:v status:I+
Sendrecv_replace  in:F+ count:v type:t to:v tag:v from:v tag:v comm:v status:I+
Isend             out:F count:v type:t to:v tag:v comm:v request:I+
Issend            out:F count:v type:t to:v tag:v comm:v request:I+
Irsend            out:F count:v type:t to:v tag:v comm:v request:I+
Irecv             in:F+ count:v type:t from:v tag:v comm:v request:I+
Wait              request:I+ status:I+
Waitall           count:v requests:I+ statuses:I+
Waitany           count:v requests:I+ index:I+ status:I+
Waitsome          count:v requests:I+ many:I+ indices:I+ statuses:I+
Test              request:I+ flag:I+ status:I+
Testall           count:v requests:I+ flag:I+ statuses:I+
Testany           count:v requests:I+ index:I+ flag:I+ status:I+
Testsome          count:v requests:I+ many:I+ indices:I+ statuses:I+
Comm_dup          comm:v made:I+
Comm_split        comm:v color:v key:v made:I+
Comm_split_type   comm:v kind:v key:v info:v made:I+
Comm_create       comm:v group:v made:I+
Comm_create_group comm:v group:v tag:v made:I+
Cart_create       comm:v n:v sizes:I periodic:I reorder:v made:I+
Cart_sub          comm:v remain:I made:I+
Dist_graph_create comm:v n:v from:I degrees:I to:I weights:I info:v reorder:v made:I+
Dist_graph_create_adjacent comm:v in:v from:I weights:I out:v to:I weights:I info:v reorder:v made:I+
Comm_free         freed:I+
Ibcast            in:F+ count:v type:t root:v comm:v request:I+
Ireduce           out:F in:F+ count:v type:t op:o root:v comm:v request:I+ | sum
Iallreduce        out:F in:F+ count:v type:t op:o comm:v request:I+ | sum
Ireduce_scatter_block out:F in:F+ count:v type:t op:o comm:v request:I+ | sum
Igather           out:F count:v type:t in:F+ count:v type:t root:v comm:v request:I+
Iscatter          out:F count:v type:t in:F+ count:v type:t root:v comm:v request:I+
Iallgather        out:F count:v type:t in:F+ count:v type:t comm:v request:I+
Ialltoall         out:F count:v type:t in:F+ count:v type:t comm:v request:I+
Igatherv          out:F count:v type:t in:F+ counts:I starts:I type:t root:v comm:v request:I+
Iscatterv         out:F counts:I starts:I type:t in:F+ count:v type:t root:v comm:v request:I+
Iallgatherv       out:F count:v type:t in:F+ counts:I starts:I type:t comm:v request:I+
Ialltoallv        out:F counts:I starts:I type:t in:F+ counts:I starts:I type:t comm:v request:I+
Ireduce_scatter   out:F in:F+ counts:I type:t op:o comm:v request:I+ | sum
Bcast             in:F+ count:v type:t root:v comm:v
Reduce            out:F in:F+ count:v type:t op:o root:v comm:v | sum prod max min
Allreduce         out:F in:F+ count:v type:t op:o comm:v | sum prod max min
Scan              out:F in:F+ count:v type:t op:o comm:v | sum prod max min
Exscan            out:F in:F+ count:v type:t op:o comm:v | sum prod max min
Reduce_scatter    out:F in:F+ counts:I type:t op:o comm:v | sum prod max min
Reduce_scatter_block out:F in:F+ count:v type:t op:o comm:v | sum prod max min
Gather            out:F count:v type:t in:F+ count:v type:t root:v comm:v
Scatter           out:F count:v type:t in:F+ count:v type:t root:v comm:v
Allgather         out:F count:v type:t in:F+ count:v type:t comm:v
Alltoall          out:F count:v type:t in:F+ count:v type:t comm:v
Gatherv           out:F count:v type:t in:F+ counts:I starts:I type:t root:v comm:v
Scatterv          out:F counts:I starts:I type:t in:F+ count:v type:t root:v comm:v
Allgatherv        out:F count:v type:t in:F+ counts:I starts:I type:t comm:v
Alltoallv         out:F counts:I starts:I type:t in:F+ counts:I starts:I type:t comm:v
Neighbor_allgather  out:F count:v type:t in:F+ count:v type:t comm:v
Neighbor_allgatherv out:F count:v type:t in:F+ counts:I starts:I type:t comm:v
Neighbor_alltoall   out:F count:v type:t in:F+ count:v type:t comm:v
Neighbor_alltoallv  out:F counts:I starts:I type:t in:F+ counts:I starts:I type:t comm:v
"""

# What is asked of MPI, and what moves no numbers: pointers are of integers, or of texts. What goes to files and comes
# from there is none that a derivative depends on, or the call is refused.
_INACTIVE = frozenset(
    """
    Barrier Ibarrier Comm_rank Comm_size Comm_remote_size Comm_compare Comm_group Comm_get_name Comm_set_name
    Comm_set_errhandler Group_rank Group_size Group_incl Group_excl Group_free Cart_coords Cart_rank Cart_shift
    Cart_get Cartdim_get Dims_create Topo_test Dist_graph_neighbors Dist_graph_neighbors_count Initialized Finalized
    Get_count Get_processor_name Get_version Pack_size
    Query_thread Is_thread_main Type_size Type_get_extent Error_string Error_class Probe Iprobe Request_get_status
    File_open File_close File_delete File_sync File_seek File_get_size File_set_size File_get_position File_set_view
    File_read File_read_all File_read_at File_read_at_all File_write File_write_all File_write_at File_write_at_all
    """.split()
)

_ASKS_OF_TYPES: Mapping[str, tuple[int, ...]] = {
    **{"Get_count": (1,), "Pack_size": (1,), "Type_size": (0,), "Type_get_extent": (0,), "File_set_view": (2, 3)},
    **{f"File_{way}{who}": (3,) for way in ("read", "write") for who in ("", "_all")},
    **{f"File_{way}{who}": (4,) for way in ("read_at", "write_at") for who in ("", "_all")},
}
_WITHOUT_TYPES = frozenset("Abort Finalize Get_address Init Init_thread Wtick Wtime".split())

# Numbers by their datatypes: letter and type of the rule's numbers; `i` stands for what is no such number.
_INTEGERS = "i"
_MPICH = {
    0x4C00040A: "s", 0x4C00080B: "d", 0x4C000840: "c", 0x4C001041: "z", 0x4C00041C: "s", 0x4C00081F: "d",
    0x4C00081E: "c", 0x4C001022: "z", 0x4C000427: "s", 0x4C000829: "d",
    0x4C000828: "c", 0x4C00102A: "z",
    **dict.fromkeys((
        0x4C000203, 0x4C000204, 0x4C000405, 0x4C000406, 0x4C000807, 0x4C000808, 0x4C000809, 0x4C000819, 0x4C00041B,
        0x4C00041D, 0x4C000137, 0x4C000238, 0x4C000439, 0x4C00083A, 0x4C00013B, 0x4C00023C, 0x4C00043D, 0x4C00083E,
        0x4C00013F, 0x4C000101, 0x4C000102, 0x4C000118, 0x4C000843, 0x4C000430, 0x4C000831,
        0x8C000002, 0x8C000003, 0x4C000816, 0x4C000820,
    ), _INTEGERS),
}  # fmt: skip
_MPICH_PACKED, _STANDARD_PACKED = 0x4C00010F, 0x207
_OPENMPI = {
    **dict.fromkeys(("float", "real", "real4"), "s"),
    **dict.fromkeys(("double", "dblprec", "real8"), "d"),
    **dict.fromkeys(("c_float_complex", "cplex"), "c"),
    **dict.fromkeys(("c_double_complex", "dblcplex"), "z"),
    **dict.fromkeys(
        """char signed_char unsigned_char short unsigned_short int unsigned long unsigned_long long_long_int
        unsigned_long_long int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t integer logical
        c_bool long_int short_int 2int 2integer""".split(),
        _INTEGERS,
    ),
}
_STANDARD = {
    0x210: "s", 0x214: "d", 0x212: "c", 0x216: "z", 0x21A: "s", 0x21C: "d", 0x21B: "c", 0x21D: "z", 0x2D2: "s",
    0x2DA: "d",
    **dict.fromkeys((
        0x201, 0x202, 0x203, 0x208, 0x209, 0x20A, 0x20B, 0x20C, 0x20D, 0x20E, 0x20F, 0x218, 0x219, 0x21E, 0x238, 0x240,
        0x241, 0x243, 0x244, 0x245, 0x248, 0x249, 0x250, 0x251, 0x258, 0x259,
        0x22A, 0x22B, 0x22C, 0x232,
    ), _INTEGERS),
}  # fmt: skip
_SIZES: Mapping[int | str, int] = {
    **dict.fromkeys("char signed_char unsigned_char int8_t uint8_t c_bool".split(), 1),
    **dict.fromkeys("short unsigned_short int16_t uint16_t".split(), 2),
    **dict.fromkeys("int unsigned int32_t uint32_t integer logical".split(), 4),
    **dict.fromkeys("long unsigned_long long_long_int unsigned_long_long int64_t uint64_t".split(), 8),
    **dict.fromkeys((0x238, 0x240, 0x241, 0x243, 0x244, 0x245), 1), **dict.fromkeys((0x208, 0x20C, 0x248, 0x249), 2),
    **dict.fromkeys((0x209, 0x20D, 0x218, 0x219, 0x250, 0x251), 4),
    **dict.fromkeys((0x20A, 0x20B, 0x20E, 0x20F, 0x258, 0x259), 8),
}  # fmt: skip
"""Bytes of integers in the two binary interfaces whose handles do not tell."""
_MPICH_PAIRS = (0x4C000816, 0x4C000820)
_OPERATIONS: Mapping[int | str, str] = {
    0x58000001: "max", 0x58000002: "min", 0x58000003: "sum", 0x58000004: "prod",
    0x21: "sum", 0x22: "min", 0x23: "max", 0x24: "prod",
    **{f"ompi_mpi_op_{name}": name for name in ("sum", "prod", "max", "min")},
}  # fmt: skip
OPERATIONS_ON_PAIRS: Mapping[int | str, str] = {
    0x5800000C: "max", 0x5800000B: "min", 0x39: "max", 0x38: "min",
    "ompi_mpi_op_maxloc": "max", "ompi_mpi_op_minloc": "min",
}  # fmt: skip
"""`MPI_MAXLOC` and `MPI_MINLOC`, of a number and a place in each pair."""
_PAIRS: Mapping[int | str, tuple[str, str, str]] = {
    0x8C000001: ("mpich", "d", "integer"), 0x8C000000: ("mpich", "s", "integer"),
    0x4C001023: ("mpich", "d", "number"), 0x4C000821: ("mpich", "s", "number"),
    0x229: ("standard", "d", "integer"), 0x228: ("standard", "s", "integer"),
    0x231: ("standard", "d", "number"), 0x230: ("standard", "s", "number"),
    "ompi_mpi_double_int": ("openmpi", "d", "integer"), "ompi_mpi_float_int": ("openmpi", "s", "integer"),
    "ompi_mpi_2dblprec": ("openmpi", "d", "number"), "ompi_mpi_2real": ("openmpi", "s", "number"),
}  # fmt: skip
"""Binary interface, letter of the numbers, and what places are: integers, or in Fortran numbers as well."""
_IN_PLACE = {
    **dict.fromkeys("Reduce Allreduce Reduce_scatter Reduce_scatter_block Scan Exscan".split(), 0),
    **dict.fromkeys("Gather Gatherv Allgather Allgatherv Alltoall".split(), 0),
    **dict.fromkeys("Iallreduce Ireduce Iallgather Iallgatherv".split(), 0),
    "Scatter": 3,
    "Scatterv": 4,
}
"""Which argument may be `MPI_IN_PLACE`: the datatype beside it counts for nothing then."""


@dataclass(frozen=True)
class Communication(Routine):
    """A call of MPI. What it receives varies, whatever it sends: other processes may have varied it; and what it sends
    is of use to them."""

    @property
    def communicates(self) -> bool:
        return bool(self.floats) or self.symbol.startswith("mpi_")

    @property
    def is_active(self) -> bool:
        return self.communicates

    @property
    def only_asks(self) -> bool:
        """Whether it only tells of MPI, in integers or texts: memory of numbers beside these is nothing to it."""
        return self.name in _INACTIVE and not self.name.startswith(("File_read", "File_write"))


@dataclass(frozen=True)
class UnderWay(Communication):
    """A function of `under_way.c`, which has no body as long as a derivative may follow; `derivative` is that of one
    that moves numbers."""

    derivative: str

    @property
    def communicates(self) -> bool:
        return bool(self.floats)

    @property
    def only_asks(self) -> bool:
        return not self.communicates

    @property
    def jvp(self) -> str:
        return self.derivative


_PREFIXES = (MPI, f"P{MPI}", MPI.lower(), f"p{MPI.lower()}")


def is_mpi(symbol: str) -> bool:
    """Whether a function is one of MPI's, in C or in Fortran."""
    return symbol.startswith(_PREFIXES)


INTERFACE = '"je.mpi"='
"""The attribute of a declaration of MPI's that says in which binary interface the module calls it."""


def communication(symbol: str, arguments: Sequence[Value], attributes: Sequence[str]) -> Communication | None:
    """What a call of a function does, or None where that is not known: of a function that has no row, or with a
    datatype or an operation that has none."""
    name = symbol.removeprefix(MPI)
    row = _rows().get(name)
    if row is None:
        return _without_numbers(name, symbol, arguments) if name in _INACTIVE else None
    parameters, operations = row
    if len(parameters) != len(arguments):
        return None
    given = [(kind, a) for (_, kind), a in zip(parameters, arguments, strict=True)]
    constants = [i for i, (kind, a) in enumerate(given) if kind.startswith("F") and _is_constant(a)]
    in_place = constants == [_IN_PLACE.get(name)]
    if constants and not in_place:
        return None
    types = [a for kind, a in given if kind == "t"]
    if not types:
        stated = next((w.removeprefix(INTERFACE).strip('"') for w in attributes if w.startswith(INTERFACE)), None)
        return None if stated is None else _row(name, stated, "d", False)
    if in_place:
        types = [arguments[i] for i in datatypes_that_count(symbol, arguments) or ()]
    kinds = {number_of(a) for a in types}
    found = next(iter(kinds)) if len(kinds) == 1 else None
    if found is None:
        return None
    abi, letter = found
    if letter == _INTEGERS:
        return _without_numbers(name, symbol, arguments)
    allowed = operations if letter in "sd" else operations[:1]
    if not all(_operation(a) in allowed for kind, a in given if kind == "o"):
        return None
    return _row(name, abi, letter, in_place)


def datatypes_of(symbol: str) -> tuple[int, ...] | None:
    """Which arguments of a function are datatypes; None where that is not known."""
    name = symbol.removeprefix(MPI)
    if name in _rows():
        return tuple(i for i, (_, kind) in enumerate(_rows()[name][0]) if kind == "t")
    if name in _ASKS_OF_TYPES:
        return _ASKS_OF_TYPES[name]
    return () if name in _INACTIVE or name in _WITHOUT_TYPES else None


def datatypes_that_count(symbol: str, arguments: Sequence[Value]) -> tuple[int, ...] | None:
    """The same, but for the one beside `MPI_IN_PLACE`, which may be any."""
    places = datatypes_of(symbol)
    at = _IN_PLACE.get(symbol.removeprefix(MPI))
    if places is None or len(places) < 2 or at is None or not _is_constant(arguments[at]):
        return places
    return places[1:] if at == 0 else places[:1]


def counts_of(symbol: str) -> frozenset[int]:
    """Which arguments of a function are lengths, of the datatype behind each."""
    parameters, _ = _rows().get(symbol.removeprefix(MPI), ((), ()))
    labels = [label for label, _ in parameters]
    return frozenset(i for i, pair in enumerate(itertools.pairwise(labels)) if pair == ("count", "type"))


_ON_RECORDS = """
beside out:F in:F+
back   out:F+ in:F+
number
end    number:v out:F+ in:F+
turn   number:v
order  incoming:v peer:v tag:v comm:v
"""


def under_way(symbol: str) -> UnderWay | None:
    """What a call of a function of `under_way.c` does, by its name: `je_mpi_mpich_isend_d_start`."""
    found = library_of(symbol)
    if found is None:
        return None
    stem, _, part = symbol.removeprefix(PREFIX).rpartition("_")
    name = stem.removeprefix(f"mpi_{found[0]}_").removesuffix(f"_{found[1]}")
    if name == "begun":
        parameters, derivative = _on_records().get(part), f"{symbol}jvp"
    elif part == "start":
        called = name.removesuffix("_in_place").capitalize()
        parameters, derivative = _row(called, *found, called.lower() != name).parameters, f"{PREFIX}{stem}_jvp"
    elif part == "complete":
        keeps = Parameter("keeps", Kind.FLAG, False, False)
        parameters, derivative = (*_row(name.capitalize(), *found, False).parameters, keeps), ""
    else:
        return None
    if parameters is None:
        return None
    scalar = T.FLOAT if found[1] in "sc" else T.DOUBLE
    return UnderWay(name.capitalize(), symbol, parameters, Result.INTEGER, scalar, found[1] in "cz", derivative)


def library_of(rule: str) -> tuple[str, str] | None:
    """The binary interface and the letter of numbers that a rule's function is for (`je_mpi_mpich_send_d_jvp`)."""
    prefix = f"{PREFIX}mpi_"
    if not rule.startswith(prefix):
        return None
    words = rule.removeprefix(prefix).split("_")
    return words[0], words[-2]


def failure(abi: str) -> str:
    """The function that ends all processes when a kernel of one has failed."""
    return f"{PREFIX}mpi_{abi}_failed_d_end"


def binary_interface(module: Module) -> str | None:
    """The binary interface by which a module calls MPI, as far as other processes may wait for its calls; None where it
    has no such call."""
    for name, function in module.functions.items():
        row = _rows().get(name.removeprefix(MPI))
        if row is None or not function.is_declaration or len(function.function_type.parameters) != len(row[0]):
            continue
        at = next((i for i, (label, _) in enumerate(row[0]) if label == "comm"), None)
        if at is None:
            continue
        if T.is_int(function.function_type.parameters[at]):
            return "mpich"
        return "openmpi" if any(of.startswith("ompi_mpi_") for of in module.globals) else "standard"
    return None


def note_interface(module: Module) -> None:
    """Says, in place, in which binary interface a module calls MPI, where a call does not show it."""
    found = binary_interface(module)
    for name, function in module.functions.items() if found is not None else ():
        if function.is_declaration and is_mpi(name):
            rest = (word for word in function.attributes if not word.startswith(INTERFACE))
            function.attributes = (*rest, f'{INTERFACE}"{found}"')


@functools.cache
def _row(name: str, abi: str, letter: str, in_place: bool) -> Communication:
    parameters, _ = _rows()[name]
    given = _IN_PLACE[name] if in_place else None
    made = tuple(_parameter(label, "v" if i == given else kind) for i, (label, kind) in enumerate(parameters))
    symbol = "_".join(("mpi", abi, name.lower(), *["in_place"] * in_place, letter))
    scalar = T.FLOAT if letter in "sc" else T.DOUBLE
    return Communication(name, symbol, made, Result.INTEGER, scalar, letter in "cz")


def _parameter(name: str, kind: str) -> Parameter:
    match kind[0]:
        case "F":
            return Parameter(name, Kind.NUMBERS, True, kind.endswith("+"))
        case "I":
            return Parameter(name, Kind.INTEGERS, True, kind.endswith("+"))
        case _:
            return Parameter(name, Kind.FLAG, False, False)


def _without_numbers(name: str, symbol: str, arguments: Sequence[Value]) -> Communication:
    """Of a call whose memory is of integers. The handles of Open MPI point to nothing that a program reads."""
    made = tuple(Parameter("", Kind.INTEGERS, True, True) for _ in arguments)
    return Communication(name, symbol, made, Result.INTEGER, T.DOUBLE, False)


@functools.cache
def _rows() -> Mapping[str, tuple[tuple[tuple[str, str], ...], tuple[str, ...]]]:
    """By name: parameters (name, kind), and the operations that there are rules for, the sum first."""
    found: dict[str, tuple[tuple[tuple[str, str], ...], tuple[str, ...]]] = {}
    for line in _ROWS.strip().splitlines():
        head, _, operations = line.partition("|")
        name, *parameters = head.split()
        split = tuple((label, kind) for label, _, kind in (text.partition(":") for text in parameters))
        found[name] = split, tuple(operations.split())
    return found


@functools.cache
def _on_records() -> Mapping[str, tuple[Parameter, ...]]:
    """The functions of `under_way.c` that are about what is begun already: their parameters."""
    rows = (line.split() for line in _ON_RECORDS.strip().splitlines())
    return {name: tuple(_parameter(*text.split(":")) for text in parameters) for name, *parameters in rows}


def number_of(datatype: Value) -> tuple[str, str] | None:
    """The binary interface and the letter of a datatype that is a constant."""
    if isinstance(datatype, GlobalValue):
        letter = _OPENMPI.get(datatype.name.removeprefix("ompi_mpi_"))
        return None if letter is None else ("openmpi", letter)
    code = _code(datatype)
    if code is None:
        return None
    abi, table = ("mpich", _MPICH) if isinstance(datatype, ConstantInt) else ("standard", _STANDARD)
    letter = table.get(code)
    return None if letter is None else (abi, letter)


def is_integer(kind: tuple[str, str]) -> bool:
    """Whether a datatype that is a constant is of integers."""
    return kind[1] == _INTEGERS


def integer_bytes(datatype: Value) -> int:
    """The size of integers whose datatype is a constant; 0 of all else, and of pairs."""
    kind = number_of(datatype)
    if kind is None or not is_integer(kind):
        return 0
    if isinstance(datatype, GlobalValue):
        return _SIZES.get(datatype.name.removeprefix("ompi_mpi_"), 0)
    code = _code(datatype) or 0
    if kind[0] == "standard":
        return _SIZES.get(code, 0)
    return code >> 8 & 0xFF if code >> 24 == 0x4C and code not in _MPICH_PAIRS else 0


def is_packed(datatype: Value) -> bool:
    """Whether a datatype is that of what MPI_Pack packs."""
    if isinstance(datatype, GlobalValue):
        return datatype.name == "ompi_mpi_packed"
    return _code(datatype) == (_MPICH_PACKED if isinstance(datatype, ConstantInt) else _STANDARD_PACKED)


def is_handle(value: Value) -> bool:
    """Whether an operation, or a datatype, is one that MPI has and the call names."""
    return isinstance(value, GlobalValue) or _code(value) is not None


def pair_of(datatype: Value, op: Value) -> tuple[str, str, str, str] | None:
    """Of a reduction of pairs of a number and its place: binary interface, letter of the numbers, what places are, and
    which number is the best; None where datatype or operation are none of these constants."""
    pair = _looked_up(_PAIRS, datatype)
    operation = _looked_up(OPERATIONS_ON_PAIRS, op)
    return None if pair is None or operation is None else (*pair, operation)


def _operation(op: Value) -> str | None:
    return _looked_up(_OPERATIONS, op)


def _looked_up(table: Mapping[int | str, Row], handle: Value) -> Row | None:
    """What a table says of a constant handle."""
    if isinstance(handle, GlobalValue):
        return table.get(handle.name)
    code = _code(handle)
    return None if code is None else table.get(code)


def _code(value: Value) -> int | None:
    """The number that a constant handle is."""
    if isinstance(value, ConstantExpr) and value.opcode == "inttoptr":
        return int_value(value.operands[0])
    code = int_value(value) if isinstance(value, ConstantInt) else None
    return None if code is None else code & 0xFFFFFFFF


def _is_constant(buffer: Value) -> bool:
    """Whether a buffer is an address that is a number: `MPI_IN_PLACE`."""
    return isinstance(buffer, ConstantExpr) and buffer.opcode == "inttoptr"
