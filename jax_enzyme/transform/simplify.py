"""From what an optimiser leaves of real code to what the engine takes: passes between two optimisations.

optimised, flat -> private volatile memory -> devirtualise -> other functions -> divisions -> failures -> struct copies
-> private globals -> rows of tables -> copies of buffers -> reallocations -> instructions of x86 -> masked memory
-> tables of pointers -> optimise again
"""

from __future__ import annotations

from jax_enzyme.ir.arrays import ArrayFunction, of_module, through
from jax_enzyme.transform.byte_swaps import widen_byte_swaps
from jax_enzyme.transform.copied_buffers import use_buffers
from jax_enzyme.transform.devirtualise import devirtualise
from jax_enzyme.transform.dispatched import leave_out_other_functions
from jax_enzyme.transform.divisions import guard_hidden_divisions
from jax_enzyme.transform.failures import lower_failures
from jax_enzyme.transform.masked_memory import lower_masked_memory
from jax_enzyme.transform.pointer_tables import choose_by_index
from jax_enzyme.transform.private_globals import privatise
from jax_enzyme.transform.private_volatile import settle_private_volatile
from jax_enzyme.transform.reallocations import lower_reallocations
from jax_enzyme.transform.row_tables import join_rows
from jax_enzyme.transform.struct_copies import split_struct_copies
from jax_enzyme.transform.x86_vectors import lower_x86_vectors


def simplify(function: ArrayFunction) -> ArrayFunction:
    """The array function after all these passes; the very same where none of them had anything to do, so that the
    caller knows whether another optimisation is worth its time."""
    on_whole = (
        settle_private_volatile,
        devirtualise,
        leave_out_other_functions,
        guard_hidden_divisions,
        lower_failures,
        split_struct_copies,
        privatise,
        widen_byte_swaps,
        join_rows,
        use_buffers,
    )
    within = (lower_reallocations, lower_x86_vectors, lower_masked_memory, choose_by_index)
    return through(function, *on_whole, *map(of_module, within))
