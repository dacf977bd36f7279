"""OpenMP: until loops are shared by XLA's threads, its directives mean what they mean on one thread.

Without the compiler's flag directives are comments, and what is left calls no run-time library of threads. OpenMP's own
functions, for one thread, are in `runtime/openmp.cpp`.
"""

from __future__ import annotations

from collections.abc import Sequence

_PASSES_ON = frozenset({"-Xclang", "-Xflang", "-Xpreprocessor", "-Xcompiler"})
"""Words that hand the next one to a part of the compiler."""


def on_one_thread(flags: Sequence[str]) -> list[str]:
    """The flags without those that make threads of directives."""
    kept: list[str] = []
    for flag in flags:
        if not flag.startswith("-fopenmp") or flag == "-fopenmp-simd":
            kept.append(flag)
        elif kept and kept[-1] in _PASSES_ON:
            kept.pop()
    return kept
