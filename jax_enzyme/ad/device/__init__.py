"""Derivatives of device functions: what one thread does, to what one thread does.

derive      one step of a derivation, over the engine of `ad`
exact       what is launched where sums must not depend on the order of threads
copies      what is launched where all blocks of a large grid add to a few places
filled      which buffers a launch fills
finished    what is launched of a derivative
rows        what is launched where each thread adds to consecutive places
threads     what the engine has to know about the other threads
"""

from jax_enzyme.ad.device.copies import in_copies
from jax_enzyme.ad.device.derive import derive, splittable
from jax_enzyme.ad.device.exact import reproducible
from jax_enzyme.ad.device.finished import finished, uncleared
from jax_enzyme.transform.device import canonical

__all__ = ["canonical", "derive", "finished", "in_copies", "reproducible", "splittable", "uncleared"]
