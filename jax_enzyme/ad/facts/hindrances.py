"""Why a loop cannot be checkpointed, as one table: the engine raises its entries, and `docs/refusals.md` shows them."""

from __future__ import annotations

from jax_enzyme.ad.facts.causes import NOT_CHECKPOINTED
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import DifferentiationError


@dataclass(frozen=True)
class Hindrance:
    """One entry: `why` the loop cannot be cut, as the message says it, and what to do. `{words}` are filled in."""

    why: str
    remedy: str

    def error(self, place: str | None, **words: str) -> DifferentiationError:
        return NOT_CHECKPOINTED.error(place=place, why=self.why.format(**words), remedy=self.remedy)


_LOOP_OF_ITS_OWN = "write it as a loop of its own"
_SWAP = "allocate it once, in front of the loop (swap two buffers)"

# What the loop looks like.
SEVERAL_WAYS = Hindrance("control enters it, or goes round in it, in several ways", _LOOP_OF_ITS_OWN)
LOCAL_ARRAYS = Hindrance("it makes local arrays", _SWAP)
JOINED_EXITS = Hindrance("control joins that of other code where it ends", _LOOP_OF_ITS_OWN)
USED_ELSEWHERE = Hindrance("what it computes is used elsewhere", _LOOP_OF_ITS_OWN)
RECURSIVE = Hindrance("it is in a function that calls itself", _LOOP_OF_ITS_OWN)

# What its iterations do that cannot be done twice, or put back.
OTHER_EFFECT = Hindrance(
    "the {instruction} may do something else when an iteration runs again", "call it before the loop"
)
UNKNOWN_POINTER = Hindrance(
    "it writes through a pointer of unknown origin",
    "keep its state in memory that the kernel allocates or is given",
)
FILE_SCOPE = Hindrance("it writes the file-scope variable `{name}`", "pass it as a parameter")
FREES_EARLIER = Hindrance(
    "an iteration frees or resizes memory that was allocated before the loop",
    "allocate and free outside the loop (swap two buffers)",
)
CALLERS_SIZE = Hindrance(
    "its state includes what parameter {number} leads to, whose size nobody says",
    "checkpoint=False, or a local copy of known size",
)
PASSED_ON = Hindrance("memory that one iteration allocates is used by another, or after the loop", _SWAP)
UNKNOWN_SIZE = Hindrance(
    "its state includes memory of unknown size ({instruction})", "allocate it with malloc, calloc or new"
)
FREES_STATE = Hindrance(
    "the {instruction} frees or resizes memory of its state",
    "allocate its final size at once, and free it in the same function",
)
MIXED_STATE = Hindrance(
    "its state mixes numbers with pointers that change, or that numbers may replace ({item})", "keep them apart"
)

HINDRANCES = (
    SEVERAL_WAYS, LOCAL_ARRAYS, JOINED_EXITS, USED_ELSEWHERE, RECURSIVE, OTHER_EFFECT, UNKNOWN_POINTER, FILE_SCOPE,
    FREES_EARLIER, PASSED_ON, UNKNOWN_SIZE, CALLERS_SIZE, FREES_STATE, MIXED_STATE,
)  # fmt: skip
"""All, in the order of the page."""
