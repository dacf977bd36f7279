"""The one-line signature of a kernel: parsing, solving dimensions, checking the arguments of a call."""

from jax_enzyme.signature.call import (
    NUMPY_NAMES,
    Actual,
    arguments,
    bind,
    inspect_signature,
    match,
    result_of,
    returned,
)
from jax_enzyme.signature.dimensions import solve
from jax_enzyme.signature.launch import Launch, Shape, parse_launch
from jax_enzyme.signature.model import RETURN, Binding, Order, Signature
from jax_enzyme.signature.params import Direction, Param
from jax_enzyme.signature.parser import parse

__all__ = [
    "NUMPY_NAMES",
    "RETURN",
    "Actual",
    "Binding",
    "Direction",
    "Launch",
    "Order",
    "Param",
    "Shape",
    "Signature",
    "arguments",
    "bind",
    "inspect_signature",
    "match",
    "parse",
    "parse_launch",
    "result_of",
    "returned",
    "solve",
]
