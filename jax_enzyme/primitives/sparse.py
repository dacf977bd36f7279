"""Sparse Jacobians, compressed: columns that share no row are computed by one derivative along their sum.

Which rows an input reaches is found by running the forward derivative on marks: a tangent of NaN goes through every
addition and every multiplication, with zero too, so that the results that are NaN are those that the marked inputs may
reach along the path that these arguments take. Sets of inputs are marked together and divided until each has one:

    marked     0..7        0..3   4..7        0,4  1,5 ..        sets that share no row are marked at once,
    reached    all rows    0..4   3..7        the rows of each   and each row tells which of them it is

Then the columns are coloured (Curtis, Powell, Reid 1974, "On the estimation of sparse Jacobian matrices"): one
derivative along the sum of each colour's columns has all their entries. Where rows need far fewer colours than columns,
cotangents are summed instead. At last the matrix is held against one more derivative, along a random direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.core import Tracer
from numpy.typing import NDArray

from jax_enzyme.errors import ArgumentError, DifferentiationError
from jax_enzyme.primitives.kernels import Kernel

if TYPE_CHECKING:
    from jax.experimental.sparse import BCOO

Indices = NDArray[np.int64]
Seeds = Callable[[int, int], NDArray[Any]]
"""Of the seeds from one number to another, a row each."""

_PARTS = 8
"""Into so many parts a set of inputs is divided."""
_TOGETHER = 32
"""So many directions are one batch at most,"""
_BYTES = 1 << 26
"""and so many bytes of directions and results."""
_COST_OF_ROWS = 2
"""A derivative in reverse takes about so many times one forward."""


def sparse_jacobian(kernel: Callable[..., Any], args: Sequence[Any], argnum: int = 0, result: int = 0) -> BCOO:
    """The derivative of one result by one argument, as a sparse array (`jax.experimental.sparse.BCOO`) of the result's
    shape followed by the argument's, as `jax.jacobian` has it.

        >>> def second_differences(x):
        ...     return x[:-2] - 2 * x[1:-1] + x[2:]
        >>> je.sparse_jacobian(second_differences, (jnp.arange(9.0),))
        BCOO(float32[7, 9], nse=21)

    `kernel`: a kernel, or any function that JAX differentiates. `args`: all its arguments, of which the one at `argnum`
    is an array of real floating-point numbers; `result`: which of several results it is of.

    It takes some derivatives for each factor of eight in the argument's size, and as many as there are colours: for a
    band of width w, some w of each, for any size. Entries are those that the path of these arguments may touch, some of
    which may be zero. Where a row has all columns it is no cheaper than `jax.jacfwd`.

    Raises ArgumentError where `args` is no tuple or list, for arguments inside of `jax.jit` (the pattern has to be
    known, so call it outside), and for complex numbers or integers; DifferentiationError where the kernel cannot be
    differentiated.
    """
    if not isinstance(args, tuple | list):
        raise ArgumentError(
            "sparse_jacobian takes all arguments of the kernel as one tuple, as `jax.jvp` does",
            remedy="write sparse_jacobian(kernel, (x,)), with the others behind x",
        )
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tuple(args))):
        raise ArgumentError(
            "sparse_jacobian needs the numbers themselves: which of them depend on which is found by running",
            remedy="call it outside of jit, grad and vmap; the matrix that it returns may go in",
        )
    if not -len(args) <= argnum < len(args):
        raise ArgumentError(f"argnum={argnum}, but there are {len(args)} arguments")
    x = _real(args[argnum], f"argument {argnum}")
    place = argnum % len(args)

    leaves, tree = jax.tree.flatten(tuple(args[:place]) + tuple(args[place + 1 :]))
    is_kernel = isinstance(kernel, Kernel)
    fixed = tuple(None if is_kernel and _is_traced(leaf) else (type(leaf), leaf) for leaf in leaves)
    known = [leaf for leaf, value in zip(leaves, fixed, strict=True) if value is None]
    function = _Function(kernel, place, result, tree, fixed)

    # Marks are NaN on purpose.
    with jax.debug_nans(False):  # pyright: ignore[reportUnknownMemberType]
        return _Jacobian(function, known, x).matrix()


def _is_traced(leaf: Any) -> bool:
    """Whether an argument is numbers that a compiled derivative is given: integers and flags may decide on shapes."""
    if isinstance(leaf, jax.Array | np.ndarray | np.generic):
        return leaf.ndim > 0 or jnp.issubdtype(leaf.dtype, jnp.inexact)
    return isinstance(leaf, float)


@dataclass(frozen=True)
class _Function:
    """One result of a kernel, of the argument at `place`. The others are the leaves of `tree`, of which some are
    `fixed`, each with its type: two that are equal may be of different ones."""

    kernel: Callable[..., Any]
    place: int
    result: int
    tree: Any
    fixed: tuple[tuple[type, Any] | None, ...]

    def __call__(self, known: Sequence[Any], moved: Any) -> jax.Array:
        given = iter(known)
        args = self.tree.unflatten([next(given) if leaf is None else leaf[1] for leaf in self.fixed])
        results = self.kernel(*args[: self.place], moved, *args[self.place :])
        several = list(results) if isinstance(results, tuple | list) else [results]
        if not -len(several) <= self.result < len(several):
            raise ArgumentError(f"result={self.result}, but there are {len(several)} results")
        return _real(several[self.result], f"result {self.result}")

    def derivatives(self) -> tuple[Any, Any]:
        """Along tangents, and against cotangents: given the other arguments, the point, and a batch of them, flat. A
        kernel's are kept with it; what any other function is made of may be another by the next call, and arrays (of
        one integer) are no keys."""
        arrays = [leaf for leaf in self.fixed if leaf is not None and isinstance(leaf[1], jax.Array | np.ndarray)]
        if arrays or not isinstance(self.kernel, Kernel):
            return _derivatives(self)
        which = ("sparse_jacobian", self.place, self.result, self.tree, self.fixed)
        return self.kernel.kept(which, lambda kernel: _derivatives(replace(self, kernel=kernel)))


def _derivatives(function: _Function) -> tuple[Any, Any]:
    def along(known: Sequence[Any], x: jax.Array, tangents: Any) -> Any:
        def one(tangent: Any) -> Any:
            return jax.jvp(partial(function, known), (x,), (tangent.reshape(x.shape),))[1].reshape(-1)

        return jax.vmap(one)(tangents)

    def against(known: Sequence[Any], x: jax.Array, cotangents: Any) -> Any:
        y, pullback = jax.vjp(partial(function, known), x)
        return jax.vmap(lambda cotangent: pullback(cotangent.reshape(y.shape))[0].reshape(-1))(cotangents)

    return jax.jit(along), jax.jit(against)


def _real(value: Any, name: str) -> jax.Array:
    if isinstance(value, dict) or (isinstance(value, tuple | list) and hasattr(value, "_fields")):
        raise ArgumentError(f"{name} is a structure: a sparse Jacobian is of one array by one array")
    array = jnp.asarray(value)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise ArgumentError(f"{name} is of {array.dtype}: a sparse Jacobian is of real floating-point numbers")
    return array


@dataclass(frozen=True)
class _Set:
    """Inputs from one number to another, and the rows that they may reach."""

    start: int
    stop: int
    rows: Indices

    def part(self, index: int) -> tuple[int, int]:
        count = min(_PARTS, self.stop - self.start)
        ends = [self.start + (self.stop - self.start) * i // count for i in (min(index, count), min(index + 1, count))]
        return ends[0], ends[1]


class _Jacobian:
    """Of a function of one array."""

    def __init__(self, function: _Function, known: Sequence[Any], x: jax.Array) -> None:
        along, against = function.derivatives()
        self._x = x
        y = jax.eval_shape(function, known, x)
        self._shape: tuple[int, ...] = y.shape
        self._dtype: Any = y.dtype
        self._columns, self._rows = x.size, int(np.prod(y.shape))

        self._forward = partial(along, known, x)
        self._reverse = partial(against, known, x)

    def matrix(self) -> BCOO:
        from jax.experimental.sparse import BCOO  # loads all of scipy.sparse, which other kernels do not need

        rows, columns = self._pattern()
        values = self._values(rows, columns)
        self._check(rows, columns, values)
        indices = [*_unravelled(rows, self._shape), *_unravelled(columns, self._x.shape)]
        every = np.stack(indices, axis=1) if indices else np.zeros((len(rows), 0), np.int64)
        shape = (*self._shape, *self._x.shape)
        data = jnp.asarray(values, self._dtype)
        return BCOO((data, jnp.asarray(every)), shape=shape, indices_sorted=True, unique_indices=True)

    def _pattern(self) -> tuple[Indices, Indices]:
        """Rows and columns of all entries, in order of the rows."""
        sets = [_Set(0, self._columns, np.arange(self._rows))]
        while any(s.stop - s.start > 1 for s in sets):
            sets = self._divided(sets)
        sets = [s for s in sets if s.stop > s.start]
        rows = np.concatenate([s.rows for s in sets]) if sets else np.zeros(0, np.int64)
        columns = np.repeat([s.start for s in sets], [len(s.rows) for s in sets]).astype(np.int64)
        order = np.lexsort((columns, rows))
        return rows[order], columns[order]

    def _divided(self, sets: Sequence[_Set]) -> list[_Set]:
        colours = _coloured([s.rows for s in sets], self._rows)
        of_colour: list[list[_Set]] = [[] for _ in range(int(colours.max(initial=-1)) + 1)]
        for number, s in zip(colours, sets, strict=True):
            of_colour[number].append(s)

        def seeds(first: int, last: int) -> NDArray[Any]:
            found = np.zeros((last - first, self._columns), self._x.dtype)
            for at in range(first, last):
                for s in of_colour[at // _PARTS]:
                    found[at - first, slice(*s.part(at % _PARTS))] = np.nan
            return found

        count = _PARTS * len(of_colour)
        reached: list[NDArray[np.bool_]] = []
        for answers in self._answers(self._forward, count, seeds):
            reached.extend(np.isnan(answers))
        parts: list[_Set] = []
        for number, s in zip(colours, sets, strict=True):
            for index in range(min(_PARTS, s.stop - s.start)):
                rows = s.rows[reached[number * _PARTS + index][s.rows]]
                if len(rows):
                    parts.append(_Set(*s.part(index), rows))
        return parts

    def _values(self, rows: Indices, columns: Indices) -> NDArray[Any]:
        of_columns = _coloured(_grouped(columns, rows, self._columns), self._rows)
        of_rows = _coloured(_grouped(rows, columns, self._rows), self._columns)
        if _COST_OF_ROWS * (of_rows.max(initial=-1) + 1) < of_columns.max(initial=-1) + 1:
            return self._entries(self._reverse, of_rows, rows, columns)
        return self._entries(self._forward, of_columns, columns, rows)

    def _entries(self, derivative: Any, colours: Indices, summed: Indices, told: Indices) -> NDArray[Any]:
        """Each entry is what the derivative along its colour has at the place that is told apart."""
        dtype = self._x.dtype if derivative is self._forward else self._dtype

        def seeds(first: int, last: int) -> NDArray[Any]:
            return (colours[None, :] == np.arange(first, last)[:, None]).astype(dtype)

        values = np.zeros(len(summed), jnp.promote_types(self._x.dtype, self._dtype))
        first = 0
        for answers in self._answers(derivative, int(colours.max(initial=-1)) + 1, seeds):
            here = (colours[summed] >= first) & (colours[summed] < first + len(answers))
            values[here] = answers[colours[summed][here] - first, told[here]]
            first += len(answers)
        return values

    def _answers(self, derivative: Any, count: int, seeds: Seeds) -> Iterator[NDArray[Any]]:
        """What the derivative makes of the seeds, some at a time. Batches are filled up with zeros to powers of two, so
        that few sizes are compiled."""
        each = (self._rows + self._columns) * 8
        most = 1 << max(0, min(_TOGETHER, _BYTES // max(each, 1)).bit_length() - 1)
        for first in range(0, count, most):
            last = min(first + most, count)
            batch = seeds(first, last)
            filled = np.zeros((1 << (last - first - 1).bit_length(), batch.shape[1]), batch.dtype)
            filled[: last - first] = batch
            yield np.asarray(derivative(filled))[: last - first]

    def _check(self, rows: Indices, columns: Indices, values: NDArray[Any]) -> None:
        """One derivative along a random direction is the matrix times that direction, or something is missing."""
        direction = np.random.default_rng(0).normal(size=self._columns)
        (answer,) = self._answers(self._forward, 1, lambda _, __: direction[None, :].astype(self._x.dtype))
        products = values.astype(np.float64) * direction[columns]
        total, size = np.zeros(self._rows), np.zeros(self._rows)
        np.add.at(total, rows, products)
        np.add.at(size, rows, np.abs(products))
        known = np.isfinite(total) & np.isfinite(answer[0].astype(np.float64))
        width = float(jnp.finfo(self._dtype).eps) ** 0.5
        off = np.abs(total - answer[0]) > width * (size + np.max(size[known], initial=0.0))
        if np.any(off & known):
            raise DifferentiationError(
                f"a sparse Jacobian does not agree with a derivative along a random direction, in row {np.argmax(off)}",
                remedy="this is a defect of jax_enzyme: please report it; jax.jacfwd does without a pattern",
            )


def _coloured(reached: Sequence[Indices], count: int) -> Indices:
    """A colour for each item, none of which is that of another that reaches the same of `count` places: the first that
    is free, in order."""
    colours = np.zeros(len(reached), np.int64)
    taken = np.zeros((count, 8), bool)
    for item, places in enumerate(reached):
        used = taken[places].any(axis=0)
        if used.all():
            taken = np.concatenate([taken, np.zeros_like(taken)], axis=1)
            used = np.concatenate([used, np.zeros_like(used)])
        colours[item] = np.argmin(used)
        taken[places, colours[item]] = True
    return colours


def _grouped(keys: Indices, values: Indices, count: int) -> list[Indices]:
    """The values of each key."""
    order = np.argsort(keys, kind="stable")
    ends = np.searchsorted(keys[order], np.arange(1, count))
    return list(np.split(values[order], ends)) if count else []


def _unravelled(places: Indices, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return np.unravel_index(places, shape) if shape else ()
