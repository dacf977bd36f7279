"""What the engine differentiates of a device function, and the way back.

flat        one address space, shared and constant memory told by name
registers   special registers as numbers with known ranges, warp intrinsics in one form
canonical   inlined, optimised, regular loops
"""

from jax_enzyme.transform.device.canonical import canonical
from jax_enzyme.transform.device.flat import restore

__all__ = ["canonical", "restore"]
