"""What every kernel goes through before it is optimised.

bind -> static objects -> streams -> allocators -> dynamic casts -> closures -> struct copies ->
divisions in endless loops -> local variables -> divisions by constants -> devirtualise -> canonical form

What an optimiser would take for undefined is made a failure first, and what it cannot see through is said in C's terms.
All else waits until little is left of the code: calls that end the process, large local variables.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.passes import run
from jax_enzyme.transform.allocators import lower_allocators
from jax_enzyme.transform.closures import lower_closures
from jax_enzyme.transform.devirtualise import devirtualise
from jax_enzyme.transform.divisions import guard_constant_divisions, guard_endless_loops, has_divisions
from jax_enzyme.transform.dynamic_casts import lower_dynamic_casts
from jax_enzyme.transform.static_objects import own_static_objects
from jax_enzyme.transform.streams import withhold_streams
from jax_enzyme.transform.struct_copies import split_struct_copies


def prepare(function: ArrayFunction) -> ArrayFunction:
    """The array function as LLVM may optimise it; itself where there is nothing to do."""
    function = guard_endless_loops(_explicit(function))
    if has_divisions(function.module):
        # A front end leaves every local variable in memory: a divisor, too.
        function = guard_constant_divisions(replace(function, module=run(function.module, ["sroa"])))
    return devirtualise(function)


def prepare_calls(function: ArrayFunction) -> ArrayFunction:
    """The first part of it: what it calls is C's, and called directly wherever that is possible. Local variables stay
    as they are."""
    return devirtualise(_explicit(function))


def _explicit(function: ArrayFunction) -> ArrayFunction:
    function = own_static_objects(function)
    function = replace(function, module=lower_dynamic_casts(lower_allocators(withhold_streams(function.module))))
    return split_struct_copies(lower_closures(function))
