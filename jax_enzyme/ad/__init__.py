"""Differentiation of array functions: forward, reverse in one function or split in two, in any order."""

from jax_enzyme.ad.derive import derive as derive
from jax_enzyme.ad.derive import splittable as splittable
