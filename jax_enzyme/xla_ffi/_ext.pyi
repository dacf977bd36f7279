"""The C++ extension: one XLA FFI handler per platform, and the table of entry points."""

from typing import Any

class Code:
    """Machine code that is known as long as this lives."""

def publish(key: str, address: int, owner: object) -> Code:
    """Makes an entry point known under its content key, as long as what is returned or an executable of XLA's lives. So
    long lives `owner`."""

def is_published(key: str) -> bool:
    """Whether an entry point is known under this key."""

def cpu_handlers() -> dict[str, Any]:
    """The stages of the CPU handler, for jax.ffi.register_ffi_target."""

def gpu_handlers(counts: bool = False, on_host: bool = False, amd: bool = False) -> dict[str, Any]:
    """The stages of the handler for GPUs, for jax.ffi.register_ffi_target. One that counts first finds out how much
    memory the kernel needs; those for platform cpu are for tests."""

def driver_error(amd: bool = False) -> str:
    """What is wrong with NVIDIA's driver, or AMD's; an empty string where there is one."""

def kept_memory() -> tuple[int, int, int]:
    """The large blocks that are kept between calls, their bytes, and how many the C library has been asked for so
    far."""

def release_memory() -> int:
    """Gives what is kept between calls back to the C library. Returns its bytes."""
