"""NVVM's dialect as that of AMD's GPUs, the last step before LLVM optimises.

before    %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()     after    %i = call i32 @nvvm.read.ptx.sreg.tid.x()
          %a = alloca double                                          %1 = alloca double, addrspace(5)
                                                                      %a = addrspacecast ptr addrspace(5) %1 to ptr
          atomicrmw fadd ptr %p, double %x monotonic                  atomicrmw fadd ptr %p, double %x
                                                                          syncscope("agent") monotonic, !amdgpu...
          @text = internal constant [3 x i8] ...                      @text = internal addrspace(1) constant ...

What a register, a barrier or a vote is there, `runtime_amd.cpp` says, which defines functions of these names. Address
spaces of shared and constant memory have the same numbers on both.
"""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.metadata import MDNode, MDRef
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.device.flat import replace_globals
from jax_enzyme.transform.device.registers import lower_registers
from jax_enzyme.transform.rewriting import place, replace_values

_DIALECT = "llvm.nvvm."
_LIFETIMES = ("llvm.lifetime.start", "llvm.lifetime.end")
_LOCAL = T.PointerType(5)
_GLOBAL = T.PointerType(1)
_SHARED = T.PointerType(3)
MAX_SHARED = 64 * 1024
"""Bytes of shared memory that a block may have."""
_DEVICE = 'syncscope("agent") '
# What XLA allocates is neither the host's nor another device's: so the hardware may add floating-point numbers itself.
# Of `float`, that takes denormal results for zero on MI200.
_OF_THE_DEVICE = ("amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory", "amdgpu.ignore.denormal.mode")


def refuse_assembly(module: Module) -> None:
    """LoweringError for inline assembly, which is PTX."""
    for function in module.functions.values():
        for instruction in function.instructions():
            if isinstance(instruction, I.CallBase) and isinstance(instruction.callee, V.InlineAsm):
                raise LoweringError(
                    f"`{function.name}` has inline assembly for NVIDIA's GPUs, which AMD's have no code for",
                    location(module, instruction),
                    'write it in C++, or run it on the CPU: jax.default_device(jax.devices("cpu")[0])',
                )


def one_form(module: Module, shape: Shape) -> None:
    """Rewrites registers and shuffles, in place, into the few forms that the run time defines. LoweringError where a
    block takes more shared memory than these devices have, over which LLVM would end the process."""
    layout = DataLayout(module)
    shared = (g for g in module.globals.values() if g.type == _SHARED and g.initializer is not None)
    needed = shape.shared + sum(layout.alloc_size(variable.value_type) for variable in shared)
    if needed > MAX_SHARED:
        raise LoweringError(
            f"a block takes {needed} bytes of shared memory, and GPUs of AMD's have {MAX_SHARED}",
            remedy="smaller tiles",
        )
    lower_registers(module, shape)


def translate(module: Module) -> None:
    """Rewrites a private module in place."""
    _move_globals(module)
    note = MDRef(_number(module))
    module.metadata[note.number] = MDNode()
    for function in list(module.functions.values()):
        if not function.is_declaration:
            _translate(function, note)
    for name in [n for n in module.functions if n.startswith(_LIFETIMES)]:
        del module.functions[name]
    for name in [n for n in module.functions if n.startswith(_DIALECT)]:
        function = module.functions.pop(name)
        function.name = name.removeprefix("llvm.")
        module.functions[function.name] = function


def _number(module: Module) -> str:
    return str(1 + max((int(n) for n in module.metadata if n.isdecimal()), default=-1))


def _move_globals(module: Module) -> None:
    """Variables without an address space of their own go to global memory."""
    places: dict[V.Value, V.Constant] = {}
    for variable in module.globals.values():
        if variable.type == T.PTR:
            variable.type = _GLOBAL
            variable.prefix = (*variable.prefix, "addrspace(1)")
            places[variable] = V.ConstantExpr(T.PTR, "addrspacecast", [variable])
    if places:
        replace_globals(module, places)


def _translate(function: Function, note: MDRef) -> None:
    replaced: dict[V.Value, V.Value] = {}
    for block in function.blocks:
        kept: list[I.Instruction] = []
        for instruction in block.instructions:
            if _is_lifetime(instruction):
                continue  # of a variable that is behind a cast now
            kept.append(instruction)
            match instruction:
                case I.Alloca():
                    made = BasicBlock()
                    replaced[instruction] = Builder(made).cast("addrspacecast", instruction, T.PTR)
                    place(instruction, made.instructions)
                    kept += made.instructions
                case I.AtomicRMW() | I.CmpXchg() if not instruction.ordering.startswith("syncscope"):
                    instruction.ordering = _DEVICE + instruction.ordering
                    instruction.metadata += [(kind, note) for kind in _OF_THE_DEVICE]
                case _:
                    pass
        block.instructions = kept
    replace_values(function, replaced)
    for variable, cast in replaced.items():
        assert isinstance(cast, I.Instruction)
        variable.type, cast.operands[:] = _LOCAL, [variable]


def _is_lifetime(instruction: I.Instruction) -> bool:
    return callee_name(instruction).startswith(_LIFETIMES)
