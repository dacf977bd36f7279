"""Libdevice's own functions for CUDA programs on a CPU: `device_math.cu`, linked into those that call them."""

from __future__ import annotations

from importlib import resources

from jax_enzyme.frontends.cuda import compile_cuda
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir import linking
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse

_STEMS = "erfinv erfcinv erfcx normcdfinv sinpi cospi sincospi norm3d rnorm3d norm4d".split()
_NAMES = frozenset((*(f"__nv_{stem}{f}" for stem in _STEMS for f in ("", "f")), "__nv_cyl_bessel_i0"))


def with_device_math(ir: str, module: Module) -> Module:
    """The module of the text `ir`, complete as far as these functions go."""
    if not any(f.is_declaration and f.name in _NAMES for f in module.functions.values()):
        return module
    source = resources.files("jax_enzyme.codegen").joinpath("device_math.cu").read_bytes()
    library = parse(compile_cuda(Source("cuda", "device_math.cu", source), ()))
    return parse(linking.link(ir, [linking.linkable(library)]))
