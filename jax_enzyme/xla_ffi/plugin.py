"""What JAX finds under the entry point `jax_plugins` of this package and calls before it makes its first client.

So a stored program (exported, or from the compilation cache) runs in any process of an environment that this package is
installed in, whether that process imports it or not.
"""

from __future__ import annotations

from jax_enzyme.xla_ffi.registration import register


def initialize() -> None:
    """The name under which JAX looks for it."""
    register()
