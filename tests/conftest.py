"""Settings of every test run."""

from __future__ import annotations

import os

import jax
from hypothesis import settings

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", os.environ.get("JAX_PLATFORMS", "cpu"))

# `make fuzz` asks for the long one by --hypothesis-profile; on its own the short one is a fixed sequence of programs.
settings.register_profile("short", max_examples=20, deadline=None, derandomize=True, database=None)
settings.register_profile("long", max_examples=2000, deadline=None)
settings.load_profile("short")
