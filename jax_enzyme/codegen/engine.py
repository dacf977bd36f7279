"""All that makes code, imported together when the first code is made: a process that finds what it needs on disk does
without, which saves it a third of its start."""

from __future__ import annotations

from jax_enzyme import ad as ad
from jax_enzyme.ad.best_again import compute_best_again as compute_best_again
from jax_enzyme.ad.best_again import keep_choices as keep_choices
from jax_enzyme.ad.facts.reruns import hindrances as hindrances
from jax_enzyme.ad.shortcuts import General as General
from jax_enzyme.ad.shortcuts import general as general
from jax_enzyme.ad.shortcuts import later as later
from jax_enzyme.ad.shortcuts import varied_inputs as varied_inputs
from jax_enzyme.codegen import library as library
from jax_enzyme.codegen.canonical import canonical as canonical
from jax_enzyme.codegen.canonical import with_regular_loops as with_regular_loops
from jax_enzyme.codegen.native_bodies import with_native_bodies as with_native_bodies
from jax_enzyme.codegen.object import compiled as compiled
from jax_enzyme.codegen.primal import primal as primal
from jax_enzyme.codegen.short_rows import note_rows as note_rows
from jax_enzyme.codegen.strips import reads_where_data_say as reads_where_data_say
from jax_enzyme.codegen.tape_bodies import with_tape_bodies as with_tape_bodies
from jax_enzyme.transform.cuda.guarded_loops import has_guarded_loops as has_guarded_loops
from jax_enzyme.transform.directions import NotLinear as NotLinear
from jax_enzyme.transform.directions import in_directions as in_directions
from jax_enzyme.transform.divisions import guard_divisions as guard_divisions
from jax_enzyme.transform.first_writes import without_needless_clears as without_needless_clears
from jax_enzyme.transform.lockstep import has_lockstep as has_lockstep
from jax_enzyme.transform.lockstep import in_lockstep as in_lockstep
from jax_enzyme.transform.lockstep import note_lockstep as note_lockstep
from jax_enzyme.transform.named_choices import name_choices as name_choices
from jax_enzyme.transform.number_kinds import look_at_kinds as look_at_kinds
from jax_enzyme.transform.parallel_loops import SHARED as SHARED
from jax_enzyme.transform.parallel_loops import share_marked_loops as share_marked_loops
from jax_enzyme.transform.places import keep_places as keep_places
from jax_enzyme.transform.places import with_places_noted as with_places_noted
from jax_enzyme.transform.prepare import prepare_calls as prepare_calls
from jax_enzyme.transform.proved_loops import mark_proved_loops as mark_proved_loops
from jax_enzyme.transform.restored_places import keep_restored_places as keep_restored_places
from jax_enzyme.transform.row_sums import sum_rows as sum_rows
from jax_enzyme.transform.shared_loops import share_loops as share_loops
from jax_enzyme.transform.unmasked import without_masks as without_masks
from jax_enzyme.transform.withheld import withhold as withhold
