"""The call from XLA: functions with their buffers, recipes, registration of the handler, and the custom call itself."""

from jax_enzyme.xla_ffi.backend import Backend, default_backend
from jax_enzyme.xla_ffi.call import Batch, buffer_type, call, signature_dtype
from jax_enzyme.xla_ffi.function import Function, Specialised, function
from jax_enzyme.xla_ffi.recipe import decode, encode
from jax_enzyme.xla_ffi.registration import CPU_TARGET, rebuild, register

__all__ = [
    "CPU_TARGET",
    "Backend",
    "Batch",
    "Function",
    "Specialised",
    "buffer_type",
    "call",
    "decode",
    "default_backend",
    "encode",
    "function",
    "rebuild",
    "register",
    "signature_dtype",
]
