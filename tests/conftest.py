"""Settings of every test run."""

from __future__ import annotations

import os

import jax
from hypothesis import Phase, settings

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", os.environ.get("JAX_PLATFORMS", "cpu"))

# Each run takes the same short sequence of programs, and shows a failing one as it is; `make fuzz` asks for the long
# profile by --hypothesis-profile: other programs every time, and the failing one made small.
settings.register_profile(
    "short", max_examples=20, deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("long", max_examples=2000, deadline=None)
settings.load_profile("short")
