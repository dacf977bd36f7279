"""OpenMP's directives as compilers lower them: first their serial meaning, then marks on the loops that were shared."""

from jax_enzyme.transform.openmp.serial import make_serial

__all__ = ["make_serial"]
