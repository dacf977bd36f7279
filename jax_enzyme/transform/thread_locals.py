"""Thread-local variables by calls: code that is linked at run time has no part in the threads' own storage.

    before    @x = thread_local global double 1.0
              %p = call ptr @llvm.threadlocal.address.p0(ptr @x)

    after     @x = constant double 1.0
              @x.control = global { i64, i64, ptr, ptr } { i64 8, i64 8, ptr null, ptr @x }
              %p = call ptr @__emutls_get_address(ptr @x.control)

The function is one of the compiler's run-time library, which every process has: `-femulated-tls` works the same way.
"""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import GlobalVariable, Module
from jax_enzyme.ir.values import BasicBlock, ConstantAggregate, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.private_globals import globals_in, replace_in

_CONTROL = T.StructType((T.I64, T.I64, T.PTR, T.PTR))
_LEAST_ALIGNED = 16


def emulate_thread_locals(module: Module) -> Module:
    """A copy of the module without thread-local variables of its own; the module itself where it has none."""
    names = [n for n, v in module.globals.items() if v.initializer is not None and _is_thread_local(v)]
    if not names:
        return module
    copy = clone(module)
    controls: dict[Value, GlobalVariable] = {copy.globals[n]: _control(copy, n, copy.globals[n]) for n in names}
    declarations = Declarations(copy)
    for function in list(copy.functions.values()):
        used = {v: None for i in function.instructions() for o in i.operands for v in globals_in(o) if v in controls}
        if used:
            get = declarations.function("__emutls_get_address", T.FunctionType(T.PTR, (T.PTR,)))
            top = Builder(BasicBlock())
            replace_in(function, {v: top.call(get, [controls[v]]) for v in used}, top)
    return copy


def _is_thread_local(variable: GlobalVariable) -> bool:
    return any(word.startswith("thread_local") for word in variable.prefix)


def _control(module: Module, name: str, variable: GlobalVariable) -> GlobalVariable:
    """What the run time knows a variable by. The variable itself becomes the table of its initial value."""
    size = DataLayout(module).alloc_size(variable.value_type)
    align = max([_LEAST_ALIGNED, *(int(w.removeprefix("align ")) for w in variable.suffix if w.startswith("align "))])
    fields = [const_int(T.I64, size), const_int(T.I64, align), ConstantNull(T.PTR), variable]
    control = GlobalVariable(
        T.PTR, _CONTROL, ConstantAggregate(_CONTROL, fields), False, ("internal",), name=f"{name}.control"
    )
    module.globals[control.name] = control
    variable.prefix = tuple(w for w in variable.prefix if not w.startswith("thread_local"))
    variable.is_constant = True
    return control
