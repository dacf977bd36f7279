"""A host function of a CUDA source as a function of the CPU: each launch becomes a call of what its grid does.

    before    call void @__je_launch(ptr @__device_stub__axpy, i32 %blocks, 1, 1, i32 256, 1, 1, i64 0, ptr %arguments)
    after     call void @je.kernel.0(i32 %n, double %a, ptr %x, ptr %y, i32 %blocks, i32 1, i32 1)

The host function is inlined and optimised first, with the constants of the signature, after which most launches have
constant numbers. A kernel is lowered once for each block that it is launched with (`lower`); where its grids differ, or
grid, block or dynamic shared memory are known at run time only, their numbers are parameters. Variables of the device
and the host's variables that stand for them are the same memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import linking
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import function_location, function_name, location, source_name, trace
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name, declare
from jax_enzyme.ir.passes import optimise, run
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.signature.launch import MAX_BLOCK, MAX_GRID, MAX_SHARED, MAX_THREADS, Shape, kernel_of_stub
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.captures import RECORD, RECORDED, write_records
from jax_enzyme.transform.cuda.handed_functions import CHOOSE_FUNCTION, functions_in, hand_functions, is_only_read
from jax_enzyme.transform.cuda.lower import bind_constants, lower, shared_overlaps
from jax_enzyme.transform.cuda.objects import aliased_pointers, passed_structure
from jax_enzyme.transform.cuda.overlaps import Overlap
from jax_enzyme.transform.cuda.spaces import SHARED
from jax_enzyme.transform.private_globals import globals_in
from jax_enzyme.transform.rewriting import Change, remove_unreachable, replace_values, rewrite

_LAUNCH = "__je_launch"
_DIRECT = "je.launch."
_NUMBERS = (T.I32,) * 6 + (T.I64,)
"""Of a launch: grid, block and dynamic shared memory."""
_FOREIGN = re.compile(r"(cuda|cublas|cufft|curand|cusparse|cusolver|cudnn|nccl|cu)[A-Z]\w*$")
_Extents = tuple[int | None, int | None, int | None]
_ALIGN = 16
_SOME_BLOCKS = (2, 1, 1)
_FEW = 4
"""A kernel that is launched with more different numbers than so many is lowered for all of them at once."""


def host_function(
    host: Module,
    device: Module,
    symbol: str,
    constants: Mapping[int, int],
    triple: str,
    data_layout: str,
    *,
    as_written: bool = False,
) -> Module:
    """A new module, in which `symbol` has the parameters that it has in `host`. `constants` are the values of integer
    parameters, by position. LoweringError for a launch that no device could do, and for what there is no definition
    of. `as_written`: as for `lower`."""
    work, device = _prepared(host, device, symbol, constants, (triple, data_layout))
    libraries: list[str] = []
    for number, (key, same) in enumerate(_grouped(_launches(work)).items()):
        name = f"{marks.LAUNCHED}{number}"
        libraries.append(_lowered(device, key, same, name, triple, data_layout, as_written))
        _call(work, key, same, name)
    work.functions = {n: f for n, f in work.functions.items() if not n.startswith(_DIRECT)}
    return parse(linking.link(to_text(work), libraries)) if libraries else work


def launched_overlaps(
    host: Module, device: Module, symbol: str, constants: Mapping[int, int], triple: str, data_layout: str
) -> list[Overlap]:
    """The accesses of shared memory that are not proved apart in the kernels that a host function launches. A kernel of
    which nobody knows the grid is looked at as one of a few blocks; one of which nobody knows the block is not."""
    if not any(SHARED in variable.prefix for variable in device.globals.values()):
        return []
    work, own = _prepared(host, device, symbol, constants, (triple, data_layout))
    found: list[Overlap] = []
    for version in _grouped(_launches(work)):
        if version.open_block:
            continue
        shape = replace(version.shape, grid=version.grid or _SOME_BLOCKS)
        found += shared_overlaps(own, version.kernel, shape, dict(version.constants), triple, data_layout)
    return list({(o.first_place, o.second_place): o for o in found}.values())


def _prepared(
    host: Module, device: Module, symbol: str, constants: Mapping[int, int], target: tuple[str, str]
) -> tuple[Module, Module]:
    """Copies of both modules, in which variables are shared, and launches have the kernel's own parameters."""
    work = clone(host)
    work.triple, work.data_layout = target
    function = work.functions[symbol]
    bind_constants(function, constants)
    device = clone(device)
    work, handed = hand_functions(work, device)
    mark_for_inlining(work, [symbol, *_share_variables(work, device)])
    work = run(work, ("always-inline", "globaldce"))
    for variable in (v for name in handed if (v := work.globals.get(name)) is not None):
        variable.is_constant = is_only_read(work, variable)
    _refuse_open(work)
    _name_kernels(work, device)
    work = optimise(work)
    if _name_kernels(work, device):
        work = optimise(work)
    if any(_is_direct(i) and not _block_is_known(i) for f in work.functions.values() for i in f.instructions()):
        # Where blocks halve from launch to launch, each round of the loop has its own.
        work = optimise(work, unroll=True)
    _refuse_foreign(work)
    if write_records(work, device, len(_NUMBERS), _DIRECT):
        work = optimise(work)
    for each in work.functions.values():
        if not each.is_declaration:
            remove_unreachable(each)
    return work, device


def _launches(work: Module) -> list[Launched]:
    return [Launched.of(work, i) for f in work.functions.values() for i in f.instructions() if _is_direct(i)]


def _share_variables(host: Module, device: Module) -> list[str]:
    """Variables of the device are the host's of these names, with the device's initial values. Constant memory that
    the host has no name for is never written, and stays where it is. Their names."""
    found: list[str] = []
    for name, variable in device.globals.items():
        shadow = host.globals.get(name)
        if SHARED in variable.prefix or variable.initializer is None or name.startswith("llvm."):
            continue
        parts = reached([variable.initializer], V.parts_of)
        if variable.is_constant and (shadow is None or shadow.is_constant):
            if shadow is not None and _is_open(shadow) and not any(isinstance(v, V.GlobalValue) for v in parts):
                shadow.initializer = variable.initializer
            continue
        if functions_in(variable):
            if shadow is not None or not is_only_read(device, variable):
                remedy = CHOOSE_FUNCTION if shadow else f"make it `static const __device__`, or {CHOOSE_FUNCTION}"
                cause = f"`{source_name(device, variable)}` holds addresses of functions, and may change"
                raise LoweringError(cause, remedy=remedy)
            variable.is_constant, variable.prefix = True, ("internal", *variable.prefix)
            continue
        if shadow is None:
            shadow = GlobalVariable(T.PTR, variable.value_type, name=name)
            host.globals[name] = shadow
        if _is_texture(variable, shadow):
            variable.value_type = T.ArrayType(DataLayout(host).alloc_size(shadow.value_type), T.I8)
        else:
            shadow.initializer = variable.initializer
        shadow.is_constant, shadow.prefix = False, ()
        shadow.suffix = tuple(w for w in variable.suffix if w.startswith("align"))
        variable.initializer, variable.is_constant = None, False
        variable.prefix = ("external", *(w for w in variable.prefix if w.startswith("addrspace")))
        variable.suffix = shadow.suffix
        found.append(name)
    return found


def _is_open(shadow: GlobalVariable) -> bool:
    """Whether this is the host's variable for one of the device, whose value clang gives the device alone."""
    return isinstance(shadow.initializer, V.Undef)


def _refuse_open(host: Module) -> None:
    """LoweringError where the host reads a constant variable of the device whose value it cannot be given."""
    for function in host.functions.values():
        for instruction in function.instructions():
            for variable in {v for operand in instruction.operands for v in globals_in(operand)}:
                if isinstance(variable, GlobalVariable) and variable.is_constant and _is_open(variable):
                    name = source_name(host, variable)
                    raise LoweringError(
                        f"the host asks for `{name}`, a constant of the device that no kernel reads which is launched"
                        " here, or that holds addresses of functions",
                        location(host, instruction) or function_location(host, function),
                        "leave out the `const`",
                    )


def _is_texture(variable: GlobalVariable, shadow: GlobalVariable) -> bool:
    """Whether this is a texture reference, of which clang shows the device no more than a handle."""
    return variable.value_type == T.I64 != shadow.value_type


# -- launches by name


def _name_kernels(host: Module, device: Module) -> bool:
    """Calls of the runtime with a known kernel become calls of a function of the kernel's own parameters, launches and
    records of them. Whether there were any."""
    functions = list(host.functions.values())
    named = {i: k for f in functions for i in f.instructions() if (k := _kernel_of(i, device)) is not None}

    def change_of(instruction: I.Instruction) -> Change | None:
        kernel = named.get(instruction)
        return None if kernel is None else lambda at: _direct(host, at, instruction, kernel)

    for function in functions:
        rewrite(function, change_of)
    return bool(named)


def _kernel_of(instruction: I.Instruction, device: Module) -> Function | None:
    if callee_name(instruction) not in (_LAUNCH, RECORD):
        return None
    handle = instruction.operands[0]
    name = kernel_of_stub(handle.name) if isinstance(handle, Function) else None
    kernel = device.functions.get(name or "")
    return None if kernel is None or kernel.is_declaration else kernel


def _direct(host: Module, at: Builder, call: I.Instruction, kernel: Function) -> V.Value | None:
    numbers, arguments = call.operands[1:-2], call.operands[-2]
    values: list[V.Value] = []
    for position, argument in enumerate(kernel.arguments):
        where = at.load(T.PTR, at.offset(arguments, 8 * position))
        is_copy = any(word.startswith("byval") for word in argument.attributes)
        values.append(where if is_copy else at.load(T.PTR if T.is_pointer(argument.type) else argument.type, where))
    name = (_DIRECT if callee_name(call) == _LAUNCH else RECORDED) + kernel.name
    made = Declarations(host).invoke(at, name, call.type, [*numbers, *values], ("nounwind",))
    return None if call.type == T.VOID else made


def _is_direct(instruction: I.Instruction) -> bool:
    return callee_name(instruction).startswith(_DIRECT)


def _block_is_known(launch: I.Instruction) -> bool:
    return all(V.int_value(number) is not None for number in launch.operands[3 : len(_NUMBERS)])


def _refuse_foreign(host: Module) -> None:
    for function in host.functions.values():
        for instruction in function.instructions():
            name = callee_name(instruction)
            callee = instruction.operands[-1] if name else None
            if name in (_LAUNCH, RECORD):
                raise LoweringError(
                    "the kernel that is launched here is not known before the program runs",
                    _place(host, instruction),
                    "launch it by its name",
                )
            if isinstance(callee, Function) and callee.is_declaration and _FOREIGN.match(name):
                raise LoweringError(
                    f"`{name}` has no meaning on the CPU",
                    location(host, instruction),
                    "a host function that is a kernel allocates, copies and launches: leave the call out, or make it in"
                    " another function",
                )


# -- what is launched


@dataclass(frozen=True, eq=False)
class Launched:
    """One launch, of a version of a kernel that is for it alone."""

    call: I.Instruction
    place: str | None
    version: _Version
    aliased: frozenset[int]

    @staticmethod
    def of(host: Module, call: I.Instruction) -> Launched:
        kernel = callee_name(call).removeprefix(_DIRECT)
        called, where = _called(host, call, kernel), _place(host, call)
        numbers = [V.int_value(v) for v in call.operands[: len(_NUMBERS)]]
        arguments = call.operands[len(_NUMBERS) : -1]
        grid, block, shared = numbers[:3], numbers[3:6], numbers[6]
        extents = _checked(called, where, "block", block, MAX_BLOCK)
        if prod(extent or 1 for extent in extents) > MAX_THREADS or not 0 <= (shared or 0) <= MAX_SHARED:
            raise LoweringError(
                f"`{called}` is launched with blocks of {extents[0]} x {extents[1]} x {extents[2]} threads and {shared}"
                " bytes of dynamic shared memory, which no device can do",
                where,
                f"a block has at most {MAX_THREADS} threads and {MAX_SHARED} bytes",
            )
        known = ((n, V.int_value(v)) for n, v in enumerate(arguments) if isinstance(v.type, T.IntType))
        constants = tuple((n, value) for n, value in known if value is not None)
        fixed = _known(_checked(called, where, "grid", grid, MAX_GRID))
        version = _Version(kernel, extents, shared, fixed, constants)
        return Launched(call, where, version, frozenset(aliased_pointers(arguments)))


def _place(host: Module, launch: I.Instruction) -> str | None:
    """Where the host launches: clang's stub, which is inlined there, has the kernel's own line."""
    places = trace(host, launch)
    return places[1] if len(places) > 1 else location(host, launch)


def _called(host: Module, launch: I.Instruction, kernel: str) -> str:
    """What the source calls a kernel, as the stub does."""
    return function_name(host, launch) or kernel if len(trace(host, launch)) > 1 else kernel


def _checked(
    called: str, where: str | None, what: str, given: Sequence[int | None], limits: tuple[int, int, int]
) -> _Extents:
    """The extents; those that are known are ones that a device has."""
    x, y, z = (None if number is None else number & 0xFFFFFFFF for number in given)
    for axis, value, limit in zip("xyz", (x, y, z), limits, strict=True):
        if value is not None and not 1 <= value <= limit:
            raise LoweringError(
                f"`{called}` is launched with {what}.{axis} = {value}",
                where,
                f"every extent is at least 1 and, here, at most {limit}",
            )
    return x, y, z


def _known(extents: _Extents) -> tuple[int, int, int] | None:
    x, y, z = extents
    return None if x is None or y is None or z is None else (x, y, z)


@dataclass(frozen=True)
class _Version:
    """A kernel as it is lowered. What is not constant is None, of the grid as a whole; `constants` are integer
    arguments, by position."""

    kernel: str
    block: _Extents
    shared: int | None
    grid: tuple[int, int, int] | None
    constants: tuple[tuple[int, int], ...]

    @property
    def open_block(self) -> tuple[int, ...]:
        """The axes along which only the run knows how many threads there are."""
        return tuple(axis for axis, extent in enumerate(self.block) if extent is None)

    @property
    def shape(self) -> Shape:
        """The largest launch; of a block of which nothing is known, that is no block of a device."""
        x, y, z = (limit if known is None else known for known, limit in zip(self.block, MAX_BLOCK, strict=True))
        return Shape(self.grid or MAX_GRID, (x, y, z), MAX_SHARED if self.shared is None else self.shared)


def _grouped(launches: Sequence[Launched]) -> dict[_Version, list[Launched]]:
    exact: dict[_Version, list[Launched]] = {}
    for one in launches:
        exact.setdefault(one.version, []).append(one)
    found: dict[_Version, list[Launched]] = {}
    for version, same in exact.items():
        others = [v for v in exact if (v.kernel, v.block, v.shared) == (version.kernel, version.block, version.shared)]
        if len(others) > _FEW:
            agreed = set(version.constants).intersection(*(v.constants for v in others))
            version = _Version(version.kernel, version.block, version.shared, None, tuple(sorted(agreed)))
        found.setdefault(version, []).extend(same)
    return found


def _lowered(
    device: Module,
    version: _Version,
    same: Sequence[Launched],
    name: str,
    triple: str,
    data_layout: str,
    as_written: bool,
) -> str:
    """The module of one version of a kernel, for LLVM's linker."""
    aliased = frozenset[int]().union(*(one.aliased for one in same))
    own = clone(device)
    _copy_structures(own, own.functions[version.kernel])
    try:
        module = lower(
            own, version.kernel, version.shape, dict(version.constants), triple, data_layout,
            open_grid=version.grid is None, open_block=version.open_block, open_shared=version.shared is None,
            aliased=aliased, as_written=as_written,
        )  # fmt: skip
    except LoweringError as error:
        raise LoweringError(error.cause, error.place or same[0].place, error.remedy) from None
    kernel = module.functions.pop(version.kernel)
    kernel.name = name
    kernel.prefix = ()
    for argument in kernel.arguments:
        argument.attributes = tuple(w for w in argument.attributes if w.startswith("noalias"))
    module.functions[name] = kernel
    return linking.linkable(module, debug=True)


def _copy_structures(module: Module, kernel: Function) -> None:
    """A structure by value that a kernel may change is each thread's own: it starts with a copy."""
    at = Builder.on_top(kernel)
    copies: dict[V.Value, V.Value] = {}
    sizes: dict[V.Value, int] = {}
    for argument in kernel.arguments:
        size = passed_structure(module, argument)
        if size is None or not _may_change(kernel, argument):
            continue
        copies[argument] = at.alloca(T.ArrayType(size, T.I8), None, _ALIGN)
        sizes[argument] = size
    replace_values(kernel, copies)
    for argument, copy in copies.items():
        size = const_int(T.I64, sizes[argument])
        Declarations(module).memory(at, "memcpy", copy, argument, size)


def _may_change(kernel: Function, argument: V.Value) -> bool:
    """Whether more than loads and copies from it are done with a pointer."""
    pointers: set[V.Value] = {argument}
    for instruction in kernel.instructions():
        used = [n for n, operand in enumerate(instruction.operands) if operand in pointers]
        match instruction:
            case I.GetElementPtr() | I.Cast() if used:
                pointers.add(instruction)
            case I.Load():
                pass
            case I.Call() if callee_name(instruction).startswith("llvm.memcpy.") and used == [1]:
                pass
            case _ if used:
                return True
            case _:
                pass
    return False


def _call(host: Module, version: _Version, same: Sequence[Launched], name: str) -> None:
    """The launches become calls of the kernel's function."""
    for one in same:
        call = one.call
        grid = call.operands[:3] if version.grid is None else []
        block = call.operands[3:6] if version.open_block else []
        shared = call.operands[6:7] if version.shared is None else []
        values = [*call.operands[len(_NUMBERS) : -1], *grid, *block, *shared]
        kind = T.FunctionType(T.VOID, tuple(v.type for v in values))
        assert isinstance(call, I.Call)
        call.operands = [*values, declare(host, name, kind)]
        call.function_type, call.parameter_attributes = kind, []
        call.flags = tuple(f for f in call.flags if f != "tail")
