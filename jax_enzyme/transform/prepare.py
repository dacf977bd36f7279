"""What every kernel goes through before it is optimised.

bind -> empty assembly -> unprototyped calls -> variadic -> computed gotos -> hash keys -> static objects -> streams ->
allocators -> dynamic casts -> closures -> struct copies -> divisions in endless loops -> divisors -> callees ->
canonical form

What an optimiser would take for undefined is made a failure first, and what it cannot see through is said in C's terms.
All else waits until little is left of the code: calls that end the process, large local variables.
"""

from __future__ import annotations

from jax_enzyme.ir.arrays import ArrayFunction, of_module, through
from jax_enzyme.transform.allocators import lower_allocators
from jax_enzyme.transform.closures import lower_closures
from jax_enzyme.transform.computed_gotos import lower_computed_gotos
from jax_enzyme.transform.devirtualise import devirtualise, hide_callees
from jax_enzyme.transform.divisions import guard_endless_loops, hide_divisors
from jax_enzyme.transform.dynamic_casts import lower_dynamic_casts
from jax_enzyme.transform.empty_assembly import drop_empty_assembly
from jax_enzyme.transform.hash_keys import fix_hash_keys
from jax_enzyme.transform.static_objects import own_static_objects
from jax_enzyme.transform.streams import withhold_streams
from jax_enzyme.transform.struct_copies import split_struct_copies
from jax_enzyme.transform.unprototyped_calls import name_parameters
from jax_enzyme.transform.variadic import lower_variadic


def prepare(function: ArrayFunction) -> ArrayFunction:
    """The array function as LLVM may optimise it; itself where there is nothing to do."""
    return through(function, *_EXPLICIT, guard_endless_loops, *map(of_module, (hide_divisors, hide_callees)))


def prepare_calls(function: ArrayFunction) -> ArrayFunction:
    """The first part of it: what it calls is C's, and called directly wherever that is possible. Local variables stay
    as they are."""
    return through(function, *_EXPLICIT, devirtualise)


_EXPLICIT = (
    *map(of_module, (drop_empty_assembly, name_parameters, lower_variadic)),
    of_module(lower_computed_gotos),
    of_module(fix_hash_keys),
    own_static_objects,
    *map(of_module, (withhold_streams, lower_allocators, lower_dynamic_casts)),
    lower_closures,
    split_struct_copies,
)
