"""How calls spread over devices: along batch dimensions. Every device runs the batch elements that it holds.

What a device holds of a batch is decided in three places, depending on the mesh. On axes of type `Auto` XLA's
partitioner decides, which follows a rule and asks for the call of one device; on `Explicit` axes the types of operands
and results do; inside `jax.shard_map` the caller does, and a call only keeps track of what varies along which axes.
A dimension of the kernel itself is never split: where it arrives split it is gathered, which is right, and costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
from jax.core import ShapedArray
from jax.sharding import NamedSharding, PartitionSpec

from jax_enzyme.primitives import compat
from jax_enzyme.xla_ffi.call import Batch, Flags

Run = Callable[..., list[Any]]
Ranks = tuple[Sequence[int], Sequence[int]]


def result_types(
    operands: Sequence[ShapedArray], batch: Batch, kinds: Sequence[jax.ShapeDtypeStruct]
) -> list[ShapedArray]:
    """The types of results: batch dimensions are split as the operands' are, dimensions of the kernel are whole."""
    placed = [o for o in operands if not o.sharding.mesh.empty]
    if not placed:
        return [ShapedArray(k.shape, k.dtype) for k in kinds]
    mesh = placed[0].sharding.mesh
    axes = _batch_axes([o.sharding.spec for o in operands], batch)
    return [
        placed[0].update(
            shape=k.shape,
            dtype=k.dtype,
            weak_type=False,
            sharding=NamedSharding(mesh, PartitionSpec(*axes, *(None for _ in k.shape[len(axes) :]))),
        )
        for k in kinds
    ]


def arranged(values: Sequence[Any], flags: Sequence[Flags]) -> list[Any]:
    """The values as operands of one call: all varying along the same axes inside `jax.shard_map`, and with dimensions
    of the kernel whole where a type says that they are split."""
    values = [_whole(v, sum(own)) for v, own in zip(values, flags, strict=True)]
    own = [compat.varying(v) for v in values]
    together = frozenset[str]().union(*own)
    return [
        v if mine == together else compat.make_varying(v, together - mine) for v, mine in zip(values, own, strict=True)
    ]


def _whole(value: Any, batch_rank: int) -> Any:
    spec = jax.typeof(value).sharding.spec
    if all(axis is None for axis in spec[batch_rank:]):
        return value
    return jax.sharding.reshard(value, PartitionSpec(*spec[:batch_rank]))


def mapped(run: Callable[[Batch], Run], batch: Batch, ranks: Ranks, operands: Sequence[Any]) -> Run:
    """The function on a mesh whose axes are all explicit: every device runs what the types of the operands give it. No
    process is asked about that later, so that such programs can be stored."""
    shardings = [jax.typeof(o).sharding for o in operands]
    mesh = next(s.mesh for s in shardings if not s.mesh.empty)
    axes = _batch_axes([s.spec for s in shardings], batch)
    inner = tuple(s // _parts(a, mesh) for s, a in zip(batch.sizes, axes, strict=True))
    arriving = tuple(_spec(axes, own, rank) for own, rank in zip(batch.flags, ranks[0], strict=True))
    leaving = tuple(_spec(axes, batch.full, rank) for rank in ranks[1])

    def parts(*values: Any) -> tuple[Any, ...]:
        return tuple(run(Batch(inner, batch.flags))(*values))

    def whole(*values: Any) -> list[Any]:
        placed = [jax.sharding.reshard(v, spec) for v, spec in zip(values, arriving, strict=True)]
        return list(jax.shard_map(parts, mesh=mesh, in_specs=arriving, out_specs=leaving, check_vma=False)(*placed))

    return whole


def partitioned(run: Callable[[Batch], Run], batch: Batch, ranks: Ranks, name: str) -> Run:
    """A function that XLA may split along batch dimensions. `run(batch)` is the function of a smaller batch; `ranks`
    are those of the operands and of the results; `name` tells functions apart in the keys of JAX's cache."""

    def whole(*values: Any) -> list[Any]:
        return run(batch)(*values)

    def partition(mesh: Any, operands: Any, results: Any) -> Any:
        specs = [o.sharding.spec for o in (*results, *operands)]
        flags = (*(batch.full for _ in results), *batch.flags)
        axes = _divisible(_batch_axes(specs, Batch(batch.sizes, flags)), batch.sizes, mesh)
        inner = tuple(s // _parts(a, mesh) for s, a in zip(batch.sizes, axes, strict=True))
        arriving = tuple(_placed(mesh, axes, own, rank) for own, rank in zip(batch.flags, ranks[0], strict=True))
        leaving = [_placed(mesh, axes, batch.full, rank) for rank in ranks[1]]
        return mesh, run(Batch(inner, batch.flags)), leaving, arriving

    whole.__name__ = name
    wrapped = compat.custom_partitioning(whole)
    rule, whole_factors = _rule(batch, ranks)
    wrapped.def_partition(partition=partition, sharding_rule=rule, need_replication_factors=whole_factors)

    def named(*values: Any) -> list[Any]:
        return wrapped(*values)

    named.__name__ = named.__qualname__ = name
    return jax.jit(named)


def _batch_axes(specs: Sequence[Any], batch: Batch) -> list[Any]:
    """Per batch dimension, the mesh axes that the first value that is split along it is split over; no axis twice."""
    axes: list[Any] = [None] * len(batch.sizes)
    used: set[str] = set()
    for spec, flags in zip(specs, batch.flags, strict=True):
        own = [d for d, flag in enumerate(flags) if flag]
        for d, axis in zip(own, spec or (), strict=False):
            names = set(_names(axis))
            if axes[d] is None and names and not names & used:
                axes[d] = axis
                used |= names
    return axes


def _parts(axis: Any, mesh: Any) -> int:
    return prod(mesh.shape[name] for name in _names(axis))


def _names(axis: Any) -> tuple[str, ...]:
    """The mesh axes in one entry of a PartitionSpec."""
    return (axis,) if isinstance(axis, str) else tuple(axis or ())


def _divisible(axes: Sequence[Any], sizes: Sequence[int], mesh: Any) -> list[Any]:
    """The axes that split a batch evenly. Elsewhere XLA would pad it, and kernels would run on the padding."""
    return [a if s % _parts(a, mesh) == 0 else None for a, s in zip(axes, sizes, strict=True)]


def _placed(mesh: Any, axes: Sequence[Any], flags: Flags, rank: int) -> NamedSharding:
    return NamedSharding(mesh, _spec(axes, flags, rank))


def _spec(axes: Sequence[Any], flags: Flags, rank: int) -> PartitionSpec:
    """How a value is split that has the flagged batch dimensions; its other dimensions are whole."""
    own = [a for a, flag in zip(axes, flags, strict=True) if flag]
    return PartitionSpec(*own, *(None for _ in range(rank - len(own))))


def _rule(batch: Batch, ranks: Ranks) -> tuple[str, tuple[str, ...]]:
    """The sharding rule in Shardy's notation, and the dimensions in it that stay whole."""
    whole: list[str] = []

    def value(flags: Flags, rank: int) -> str:
        names = [f"b{d}" for d, flag in enumerate(flags) if flag]
        core = [f"w{len(whole) + n}" for n in range(rank - len(names))]
        whole.extend(core)
        return " ".join([*names, *core])

    operands = [value(flags, rank) for flags, rank in zip(batch.flags, ranks[0], strict=True)]
    results = [value(batch.full, rank) for rank in ranks[1]]
    return f"{', '.join(operands)} -> {', '.join(results)}", tuple(whole)
