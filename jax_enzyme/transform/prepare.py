"""What every kernel goes through first, whether it is differentiated or not: it must not end the process.

bind -> static objects -> streams -> allocators -> dynamic casts -> closures -> struct copies ->
divisions in endless loops -> local variables -> divisions by constants -> devirtualise -> failures -> heap locals ->
(code generation | canonical form)

A front end leaves every local variable in memory and every call as it is. What comes after `struct copies` looks at
each instruction, and what is inlined is as many times there: so local variables become values function by function,
before that. In code of many small functions (Eigen's, say) a sixth of the instructions is left to inline.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.passes import run
from jax_enzyme.transform.allocators import lower_allocators
from jax_enzyme.transform.closures import lower_closures
from jax_enzyme.transform.devirtualise import devirtualise
from jax_enzyme.transform.divisions import guard_constant_divisions, guard_endless_loops
from jax_enzyme.transform.dynamic_casts import lower_dynamic_casts
from jax_enzyme.transform.failures import lower_failures
from jax_enzyme.transform.heap_locals import move_large_locals
from jax_enzyme.transform.static_objects import own_static_objects
from jax_enzyme.transform.streams import withhold_streams
from jax_enzyme.transform.struct_copies import split_struct_copies


def prepare(function: ArrayFunction) -> ArrayFunction:
    """The array function over C's allocators, its failures a status; itself where there is nothing to do."""
    function = guard_endless_loops(_explicit(function))
    function = replace(function, module=run(function.module, ["sroa"]))
    return move_large_locals(lower_failures(devirtualise(guard_constant_divisions(function))))


def prepare_calls(function: ArrayFunction) -> ArrayFunction:
    """The first part of it: what it calls is C's, and called directly wherever that is possible. Local variables stay
    as they are."""
    return devirtualise(_explicit(function))


def _explicit(function: ArrayFunction) -> ArrayFunction:
    function = own_static_objects(function)
    function = replace(function, module=lower_dynamic_casts(lower_allocators(withhold_streams(function.module))))
    return split_struct_copies(lower_closures(function))
