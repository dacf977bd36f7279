"""Holds the parameters of a kernel against those of its signature: what each is in the source, and what is said where
that is something else.

    "x: f64[n], m: u32"    void f(const float *x, int m)        SignatureError: `x: f64[n]` ..., but in the source ...

By debug information, where there is some, else by the types of the IR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import SignatureError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.metadata import MDValue
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.signature import Param, Signature
from jax_enzyme.signature.formals import Formal, FunctionOf, Plain, Record, Text
from jax_enzyme.transform.declared import (
    Mismatch,
    by_value,
    declared_as,
    is_a_pointer,
    is_structure_by_value,
    mismatch,
    result_mismatch,
    shown,
    unlike_memory,
    written_structure,
)
from jax_enzyme.transform.layouts import (
    IN_REGISTERS,
    Differs,
    Layout,
    composite_type,
    elements_of,
    fits_behind,
    is_unknown,
    layout_of,
    natural,
    pointed_at,
)
from jax_enzyme.transform.passed_functions import unlike_function
from jax_enzyme.transform.prototype import Prototype, prototype
from jax_enzyme.transform.records import PARTS, dtype_of
from jax_enzyme.transform.source_types import UNION, SourceType
from jax_enzyme.transform.spelled import ASK, spelled


@dataclass(frozen=True, eq=False)
class Source:
    """What a kernel takes and returns. Parameters are numbered as the signature numbers its own."""

    module: Module
    kernel: Function
    signature: Signature
    sizes: Mapping[str, int]
    """Of the dimensions that are known."""

    @cached_property
    def prototype(self) -> Prototype:
        return prototype(self.module, self.kernel)

    @property
    def formals(self) -> Sequence[Formal]:
        return self.signature.arguments

    @property
    def returns_in_memory(self) -> bool:
        return any(word.startswith("sret") for a in self.kernel.arguments[:1] for word in a.attributes)

    def node(self, index: int) -> MDValue | None:
        """The type of a parameter, if the debug information counts parameters as the signature does."""
        nodes = self.prototype.nodes
        return nodes[index] if len(nodes) == len(self.formals) else None

    def source_type(self, index: int) -> SourceType | None:
        """The same as the source writes it."""
        known = self.prototype.parameters
        return known[index] if known is not None and len(known) == len(self.formals) else None

    def texts(self) -> list[Param | Text]:
        """The parameters whose lengths Fortran passes behind all others, where neither the source nor its debug
        information names them: characters, of which the kernel has as many as it has parameters too many."""
        known = self.prototype.parameters
        given = [
            f if isinstance(f, Text) else f.param for f in self.formals if isinstance(f, Plain | Text) and f.is_text
        ]
        hidden = 0 if known is None or not self.prototype.is_fortran else len(self.kernel.arguments) - len(known)
        return given if len(given) == hidden and all(a.type == T.I64 for a in self.kernel.arguments[-hidden:]) else []

    def place(self) -> str:
        text = str(self.prototype)
        return f"{self.prototype.place}: {text}" if self.prototype.place else text

    def named(self, index: int) -> str:
        name = self.prototype.parameter_name(index)
        return f", `{name}`," if name else ""

    def is_union(self, index: int) -> bool:
        node = composite_type(self.module, self.node(index))
        return node is not None and node.get("tag") == UNION

    def layout(self, index: int, record: Record) -> Layout:
        """The layout of a structure; SignatureError where the source has another one there, or none."""
        node = self.node(index)
        if node is None:
            return natural(record)
        try:
            behind = pointed_at(self.module, node)
        except KeyError:
            # Fortran passes a variable of derived type by reference, and describes the variable.
            behind = node if self.prototype.is_fortran or not record.is_pointer else None
            behind = behind if record.count is None else elements_of(self.module, behind)
        if (not record.is_pointer and behind is not node) or behind is None:
            raise self.other_kind(index, record)
        if composite_type(self.module, behind) is None and not is_unknown(self.module, behind):
            raise self.other_kind(index, record)
        known = self.source_type(index)
        if self.prototype.is_fortran and known is not None and known.special is not None and known.is_record:
            raise self.mismatch(index, unlike_memory(record.text("in"), known, known.special))
        layout = self.of_source(record, behind)
        self.check_written(index, record)
        return layout

    def of_source(self, record: Record, node: MDValue | str | None) -> Layout:
        try:
            return layout_of(self.module, record, node)
        except Differs as differs:
            returned = record is self.signature.structure
            raise SignatureError(
                f"the structure {'that is returned' if returned else f'`{record.name}`'} is another one in the source:"
                f" {differs}",
                f"{self.place()}\nsignature: {f'-> {record.braces}' if returned else record.text('in')}"
                f"\nsource: {differs.source}",
                "list all members, in the source's order; a pointer has a `*` behind its brackets, one that is not"
                " needed is `null`, and bit fields that lie together are one integer",
            ) from None

    def check_count(self) -> None:
        if self.returns_in_memory and self.signature.structure is None:
            raise self.wrong_result(T.PTR)
        least = len(self.formals) + self.returns_in_memory
        most = least + sum(_words(formal) - 1 for formal in self.formals)
        if not least <= len(self.kernel.arguments) - len(self.texts()) <= most:
            raise self.wrong_count()

    def check_order(self) -> None:
        """The same names in another order are a mistake, which types alone need not show."""
        given = [f.param.name if isinstance(f, Plain) else f.name for f in self.formals]
        there = [self.prototype.parameter_name(i) or "" for i in range(len(given))]
        if given != there and sorted(given) == sorted(there):
            raise SignatureError(
                f"the parameters of `{self.kernel.name}` come in another order than those of the signature",
                f"{self.place()}\nsignature: {self.signature}",
                f"the source's order is {', '.join(there)}",
            )

    def check_declared(self, index: int, param: Param, argument: Argument) -> None:
        """What debug information tells of a parameter must be what the signature says."""
        known = self.source_type(index)
        # flang describes a character as an integer.
        if known is None or param in self.texts() or is_a_pointer(known, argument):
            return
        found = mismatch(
            param,
            known,
            is_dimension=self.signature.is_dimension(param.name),
            order=self.signature.order,
            sizes=self.sizes,
            passed={p.name for p in self.signature.params},
        )
        if found is not None:
            raise self.mismatch(index, found)

    def check_result(self) -> None:
        known, wanted = self.prototype.result, self.signature.result
        if known is None or wanted is None or wanted == "status":
            return
        found = result_mismatch(wanted, known)
        if found is not None:
            raise SignatureError(
                f"the signature says `-> {wanted}`, but `{self.kernel.name}` returns `{known.text}`",
                self.place(),
                f"write `-> {found}`",
            )

    def check_rows(self, index: int, formal: Plain) -> None:
        node = self.node(index)
        if node is not None and not fits_behind(self.module, formal, node):
            raise self.other_kind(index, formal)

    def check_written(self, index: int, record: Record) -> None:
        known = self.source_type(index)
        found = None if known is None else written_structure(record, known)
        if found is not None:
            raise self.mismatch(index, found)

    def check_passed(self, index: int, formal: FunctionOf, passed: Value) -> None:
        node = None if self.prototype.is_fortran else self.node(index)
        if node is None or not isinstance(passed, Function):
            return
        if (found := unlike_function(self.module, node, passed)) is not None:
            own, wanted = found
            raise self.mismatch(
                index,
                Mismatch(
                    f"`{formal.symbol}` is a function `{own}`",
                    f"called as `{wanted}`",
                    f"name a function of that type, or add one to the source that calls `{formal.symbol}`",
                ),
            )

    def mismatch(self, index: int, found: Mismatch) -> SignatureError:
        return SignatureError(
            f"{found.declared}, but in the source parameter {index + 1}{self.named(index)} is {found.found}",
            self.place(),
            found.remedy,
        )

    def other_kind(self, index: int, formal: Formal) -> SignatureError:
        known = self.source_type(index)
        is_record = isinstance(formal, Record) and known is not None and known.is_record
        remedy = "behind a pointer it is `{...}*`, by value `{...}`" if is_record else self.as_in_source(index)
        return SignatureError(
            f"`{formal.text('in')}` in the signature, but in the source parameter {index + 1}{self.named(index)} is"
            f" `{known.text if known else '?'}`",
            self.place(),
            remedy,
        )

    def no_pointer(self, index: int, formal: Formal, kind: T.Type) -> SignatureError:
        return SignatureError(
            f"`{formal.text('in')}` in the signature is a pointer, but in the source parameter"
            f" {index + 1}{self.named(index)} is {shown(self.source_type(index), kind)}",
            self.place(),
            self.as_in_source(index),
        )

    def as_in_source(self, index: int) -> str:
        """How a parameter is declared that the signature has something else for."""
        node, formal = self.node(index), self.formals[index]
        name = formal.param.name if isinstance(formal, Plain) else formal.name
        known = self.source_type(index)
        kinds = [a.type for a in self.kernel.arguments[index : index + 1]]
        if node is None or known is None or known.is_record:
            return ASK
        by_reference = self.prototype.is_fortran and kinds == [T.PTR]
        return spelled(self.module, name, node, self.signature.order, by_reference=by_reference)

    def _by_value(self) -> SignatureError | None:
        """Structures and complex numbers by value are as many parameters in LLVM as it takes, which shows as another
        error."""
        for index, formal in enumerate(self.formals):
            known = self.source_type(index)
            if known is None or known.is_pointer or self.prototype.is_fortran:
                continue
            if is_structure_by_value(known):
                if isinstance(formal, Plain):
                    return self.mismatch(index, by_value(formal.param, known))
                if isinstance(formal, Record) and not formal.is_pointer:
                    continue
                return self.other_kind(index, formal)
            dtype = next((d for piece in known.pieces for d in piece.dtypes[:1]), None)
            if dtype in PARTS and not (isinstance(formal, Plain) and formal.param.by_value):
                return self.other_kind(index, formal)
        return None

    def wrong_count(self) -> SignatureError:
        structure = self._by_value()
        if structure is not None:
            return structure
        known = self.prototype.parameters
        there = len(known) if known else len(self.kernel.arguments)
        given = len(self.formals)
        return SignatureError(
            f"{given} parameter{'s' if given != 1 else ''} in the signature, but `{self.kernel.name}` has {there}",
            f"{self.place()}\nsignature: {self.signature}",
            "a Fortran function takes the derived type that it returns as its first parameter: `out p: {...}*`"
            if self.prototype.is_fortran and self.signature.structure is not None
            else "the signature lists the source's parameters, all of them, in the source's order",
        )

    def wrong_type(self, index: int, param: Param, kind: T.Type, expected: str) -> SignatureError:
        known = self.source_type(index)
        if known is not None and is_structure_by_value(known):
            return self.mismatch(index, by_value(param, known))
        return SignatureError(
            f"`{param}` in the signature means {expected}, but in the source parameter {index + 1}{self.named(index)}"
            f" is {shown(known, kind)}",
            self.place(),
            declared_as(param, known, kind, dtype_of(kind)) or self.as_in_source(index),
        )

    def wrong_result(self, kind: T.Type) -> SignatureError:
        known = self.prototype.result if self.prototype.parameters is not None else None
        found, same = shown(known, kind), dtype_of(kind)
        remedy = "leave the `->` out" if kind == T.VOID else f"write `-> {same}`" if same else None
        if self.returns_in_memory or (known is not None and known.is_record and not known.is_pointer):
            found = f"the structure {found}" if known else "a structure"
            remedy = "list its members: `-> {a: f64, b: f64[3]}`; je.suggest_signature writes them"
        structure = self.signature.structure
        said = self.signature.result if structure is None else structure.braces
        return SignatureError(
            f"the signature says {f'`-> {said}`' if said else 'nothing of a result'}, but `{self.kernel.name}`"
            f" returns {found}",
            self.place(),
            remedy,
        )


def _words(formal: Formal) -> int:
    """How many parameters a function may have for one formal."""
    if isinstance(formal, Plain):
        return 2 if formal.param.by_value and formal.param.dtype in PARTS else 1
    return IN_REGISTERS if isinstance(formal, Record) and not formal.is_pointer else 1
