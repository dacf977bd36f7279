"""The pieces of memory of this process, which Linux counts: where there are as many as it allows, memory can be neither
had nor given back, and processes end in strange ways."""

from __future__ import annotations

from pathlib import Path

from jax_enzyme.errors import LoweringError

_ALLOWED, _OURS = Path("/proc/sys/vm/max_map_count"), Path("/proc/self/maps")
_RESERVED = 2048
"""What 128 kernels take until this is asked again, what JAX takes for as many compiled functions, and then some."""


def require_room() -> None:
    """Raises LoweringError where there is no room for more code; nothing on systems that count otherwise."""
    try:
        allowed = int(_ALLOWED.read_text())
        with _OURS.open("rb") as lines:
            taken = sum(chunk.count(b"\n") for chunk in iter(lambda: lines.read(1 << 20), b""))
    except (OSError, ValueError):
        return
    if taken > max(allowed - _RESERVED, allowed // 2):
        raise LoweringError(
            f"this process has {taken} pieces of memory of the {allowed} that Linux allows it (vm.max_map_count); each "
            "compiled function that is kept takes a few, and memory runs out when there are none left",
            remedy="drop kernels and jitted functions that are not needed any more (jax.clear_caches()), make one for "
            "all sizes in place of one for each, or have the limit raised: sysctl -w vm.max_map_count=1048576",
        )
