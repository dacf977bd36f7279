"""How a kernel is built: an immutable value that is part of a kernel's identity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """`fast_math`: the kernel's own floating-point operations may be reassociated and contracted, as `-ffast-math`
    does. Without it the primal keeps the meaning that its compiler gave it (adjoint sums may always be reordered).

    `vector_math`: vectorised loops may call the vector versions of `math.h` where the system has them (glibc's libmvec),
    which are within 4 ulp where the scalar ones are within 1."""

    fast_math: bool = False
    vector_math: bool = True
