"""What a signature says: parameters, a result, and the storage order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal as Choice

from jax_enzyme.classes import dataclass, field
from jax_enzyme.errors import ArgumentError, SignatureError
from jax_enzyme.signature.expressions import EvaluationError, Expression, evaluate, names_in
from jax_enzyme.signature.formals import Formal, Plain, Record
from jax_enzyme.signature.params import INTEGERS, Param

Order = Choice["C", "F"]

RETURN = "return"
"""The name of the return value among the results; no parameter can have it, as it is a Python keyword."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The constants of one specialisation: the solved dimensions (free shape variables too), and the values of integer
    scalars that were given as Python ints. Both sorted by name, so that equal bindings are equal values."""

    dims: tuple[tuple[str, int], ...] = ()
    static: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(dims: Mapping[str, int], static: Mapping[str, int]) -> Binding:
        return Binding(tuple(sorted(dims.items())), tuple(sorted(static.items())))

    @property
    def constants(self) -> dict[str, int]:
        """All bound names with their values."""
        return {**dict(self.dims), **dict(self.static)}


@dataclass(frozen=True)
class Signature:
    """A whole signature: an immutable value, made by `parse` (which checks it).

    `result` is a dtype (the return value is an output), `"status"` (a non-zero int return is a failure) or None.
    `formals` are the parameters of the function where those are not `params` themselves (see `formals`), else empty.
    `structure` is what the function returns by value, where that is a structure; `result` is None then. `variables` are
    the last parameters, which are variables of the source (`const`).
    `str()` gives the text in canonical form; parsing that gives an equal signature.
    """

    params: tuple[Param, ...]
    result: str | None = None
    order: Order = "C"
    formals: tuple[Formal, ...] = ()
    structure: Record | None = None
    variables: tuple[str, ...] = ()
    _by_name: dict[str, Param] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {param.name: param for param in self.params})

    def __str__(self) -> str:
        listed = [f.text("in") for f in self.formals] if self.formals else list(map(str, self.params))
        first = len(listed) - len(self.variables)
        text = ", ".join((*listed[:first], *(f"const {variable}" for variable in listed[first:])))
        result = self.result if self.structure is None else self.structure.braces
        return text if result is None else f"{text} -> {result}"

    def __reduce__(self) -> tuple[type[Signature], tuple[object, ...]]:
        return (Signature, (self.params, self.result, self.order, self.formals, self.structure, self.variables))

    def __getitem__(self, name: str) -> Param:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Param]:
        return iter(self.params)

    @cached_property
    def arguments(self) -> tuple[Formal, ...]:
        """What the function takes, in order."""
        return self.formals or tuple(Plain(p, p.dims) for p in self.params)

    @cached_property
    def shape_names(self) -> frozenset[str]:
        """Every name that occurs in a shape: dimensions, and free shape variables that no parameter carries."""
        found: frozenset[str] = frozenset()
        return found.union(*(names_in(dim) for param in self.params for dim in param.dims or ()))

    @cached_property
    def dimensions(self) -> tuple[Param, ...]:
        """The integer scalars whose names occur in shapes: solved, never passed by the caller."""
        return tuple(p for p in self.params if p.name in self.shape_names)

    def is_dimension(self, name: str) -> bool:
        return name in self.shape_names and name in self

    @cached_property
    def caller_params(self) -> tuple[Param, ...]:
        """What the caller passes: `in` and `inout` parameters that are no dimensions and have no fixed value, in
        signature order."""
        return tuple(p for p in self.params if self.is_passed(p))

    def is_passed(self, param: Param) -> bool:
        """Whether the caller passes a parameter."""
        return param.is_input and param.value is None and param.name not in self.shape_names

    def constants(self, binding: Binding) -> dict[str, int]:
        """All bound names with their values, those with a fixed one among them."""
        return {**{p.name: p.value for p in self.params if p.value is not None}, **binding.constants}

    @cached_property
    def returned(self) -> tuple[Param, ...]:
        """The return value (named `return`), or the members of the structure that it is (`return.x`)."""
        if self.structure is not None:
            return self.structure.params
        return () if self.result in (None, "status") else (Param(RETURN, str(self.result), "out", ()),)

    @cached_property
    def results(self) -> tuple[Param, ...]:
        """What the caller gets: the return value, then `inout` and `out` parameters in order."""
        return (*self.returned, *(p for p in self.params if p.direction in ("inout", "out")))

    def shape(self, name: str, dims: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of a parameter for solved dimensions; an ArgumentError if it has none (negative, inexact)."""
        return self.extents(self[name], dims)

    def extents(self, param: Param, dims: Mapping[str, int]) -> tuple[int, ...]:
        """The same for a parameter or a result."""
        return tuple(self._extent(param, dim, dims) for dim in param.dims or ())

    def _extent(self, param: Param, dim: Expression, dims: Mapping[str, int]) -> int:
        given = ", ".join(f"{n} = {dims[n]}" for n in sorted(names_in(dim)))
        try:
            extent = evaluate(dim, dims)
        except EvaluationError as error:
            raise ArgumentError(f"the shape of `{param.name}` has no value: {error}", f"{param} with {given}") from None
        if extent < 0:
            raise ArgumentError(f"the shape of `{param.name}` would be negative: {dim} = {extent}", f"{param}, {given}")
        return extent

    def check_meaning(self) -> None:
        """Raises SignatureError for what parses but makes no sense. `parse` calls it."""
        for param in self.dimensions:
            if not param.is_scalar or param.dtype not in INTEGERS or param.direction != "in":
                uses = ", ".join(str(p) for p in self.params if any(param.name in names_in(d) for d in p.dims or ()))
                raise SignatureError(
                    f"`{param.name}` occurs in a shape, but it is no integer scalar that goes in: {param}",
                    f"used by {uses}",
                    f"declare it as `{param.name}: i32` or `{param.name}: i64`, or rename the one or the other",
                )
        if not self.results:
            raise SignatureError(
                "nothing comes out of this kernel: no `out` or `inout` parameter and no return value",
                str(self),
                "mark what the kernel writes with `out` or `inout`, or declare its return value: `-> f64`",
            )
