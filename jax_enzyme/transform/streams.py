"""C++ streams stay outside of what is differentiated: functions over them lose their bodies.

    before    define linkonce_odr ptr @_ZNSt3__1lsI...(ptr %stream, ptr %text) { ... much code over buffers ... }
    after     declare ptr @_ZNSt3__1lsI...(ptr %stream, ptr %text)

They are what libc++ has as templates in its headers, where others have a library. `codegen.native_bodies` gives them
back to the finished code.
"""

from __future__ import annotations

from jax_enzyme.ir.module import Function, Module
from jax_enzyme.rules.streams import of_streams
from jax_enzyme.transform.rewriting import on_functions
from jax_enzyme.transform.withheld import drop_body


def withhold_streams(module: Module) -> Module:
    """A copy of the module with declarations for functions over streams; the module itself where it has none."""
    return on_functions(module, _is_withheld, lambda f: drop_body(f) if _is_withheld(f) else None)


def _is_withheld(function: Function) -> bool:
    optional = "linkonce_odr" in function.prefix or "weak_odr" in function.prefix
    return optional and not function.is_declaration and of_streams(function.name)
