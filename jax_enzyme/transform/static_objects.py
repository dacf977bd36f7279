"""Objects of C++ with static storage live as long as a call: constructed when it starts, destroyed when it ends.

    before   @llvm.global_ctors = ... @_GLOBAL__sub_I_k            after   @je.alive.0 = internal global i8 0
             define void @_GLOBAL__sub_I_k() {                             define i64 @je.primal(...) {
               call void @__cxx_global_var_init()                            call void @__cxx_global_var_init()
               ret void                                                      ...
             }                                                               %alive = load i8, ptr @je.alive.0
             define void @__cxx_global_var_init() {                          (if it is not 0:)
               call void @construct(ptr @table)                              call void @destroy(ptr @table)
               call i32 @__cxa_atexit(ptr @destroy, ptr @table, ...)         ret i64 0
               ret void                                                    }
             }                                                             define void @__cxx_global_var_init() {
                                                                             call void @construct(ptr @table)
                                                                             store i8 1, ptr @je.alive.0
                                                                             ret void
                                                                           }

File-scope variables start every call from their initial values (`private_globals`), and for these that is what their
constructors leave. Their memory comes from the kernel itself then, so that it may be followed, and is given back. The
same goes for objects inside functions, which are constructed when control first comes there.

Constructors of what the kernel does not use are dropped. Those of numbers that it only reads, with nothing allocated,
run once, when the code is loaded, on copies of the functions that they call: later passes change those of the kernel.
A kernel that fails leaves its objects as they are. Where functions that are called by address lead to such variables,
no call has them to itself (`private_globals`): all constructors run once then, and nothing is destroyed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from jax_enzyme.analysis.objects import named_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_function, own_with_map, with_room
from jax_enzyme.ir.module import Function, GlobalAlias, GlobalVariable, Module, define
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import (
    BasicBlock,
    Constant,
    ConstantAggregate,
    ConstantExpr,
    ConstantNull,
    ConstantSplat,
    Value,
    int_value,
    parts_of,
)
from jax_enzyme.remembered import remembered
from jax_enzyme.transform.rewriting import Change, replace_operands, rewrite, split_before

_CONSTRUCTORS = "llvm.global_ctors"
_SECTION = 'section ".init_array'
_AT_EXIT = ("__cxa_atexit", "__cxa_thread_atexit")
"""At the end of the process, and of the thread: a call has one thread."""
_ONCE = "je.constructors"
_NOTHING = T.FunctionType(T.VOID, ())
_NAMING = (GlobalVariable, GlobalAlias, ConstantExpr, ConstantAggregate, ConstantSplat)
"""Constants that may name variables."""


def own_static_objects(function: ArrayFunction) -> ArrayFunction:
    """The array function with its static objects; the very same where it has none."""
    module, root, named = function.module, function.module.functions[function.symbol], _Named()
    registers = any(_registration(i) for f in named.mentioned(root) for i in f.instructions())
    constructors = _constructors(module)
    if not registers and all(c.name == _ONCE for c in constructors):
        return function
    units = [u for c in constructors for u in _units(c)]
    hidden = _hidden_uses(root, units, named)
    inside, once = ([], units) if hidden else _sorted(root, units, named)
    stays = not (registers or inside or once or any(map(_is_list, module.globals.values())))
    module, copies = (with_room(module), {}) if stays else own_with_map(module)
    module.globals.pop(_CONSTRUCTORS, None)
    module.globals.pop("llvm.global_dtors", None)
    for variable in filter(_is_list, module.globals.values()):
        variable.suffix = ()
    root, *rest = (f for v in (root, *inside, *once) if isinstance(f := copies.get(v, v), Function))
    inside, once = rest[: len(inside)], rest[len(inside) :]
    if once:
        _run_once(module, once)
    at = Builder.on_top(root)
    for unit in inside:
        at.call(unit, [])
    if (registers or inside) and not hidden:
        _destroy_at_the_end(module, root, inside)
    return replace(function, module=module)


def _constructors(module: Module) -> list[Function]:
    """In the order in which they run: those that the compiler lists, then those that the source lists itself."""
    table = module.globals.get(_CONSTRUCTORS)
    listed = table.initializer if table is not None else None
    rows = [row.elements for row in parts_of(listed) if isinstance(row, ConstantAggregate)] if listed else []
    rows.sort(key=lambda row: int_value(row[0]) or 0)
    own = [v.initializer for v in module.globals.values() if _is_list(v)]
    found = [*(row[1] for row in rows), *(f for value in own if value is not None for f in named_functions(value))]
    return [f for f in found if isinstance(f, Function)]


def _is_list(variable: GlobalVariable) -> bool:
    """Whether the linker is to run what a variable holds."""
    return any(word.startswith(_SECTION) for word in variable.suffix)


def _units(constructor: Function) -> list[Function]:
    """The constructors of single variables, where the compiler left one that only calls them."""
    *calls, last = (i for i in constructor.instructions())
    callees = [c.callee for c in calls if isinstance(c, I.Call) and not c.arguments]
    units = [c for c in callees if isinstance(c, Function) and c.function_type == _NOTHING and c.blocks]
    return units if isinstance(last, I.Return) and len(units) == len(calls) else [constructor]


def _sorted(root: Function, units: Sequence[Function], named: _Named) -> tuple[list[Function], list[Function]]:
    """The constructors that the kernel needs: those that every call runs, and those that run once."""
    inside: list[Function] = []
    while True:
        kernel = named.mentioned(root, *inside)
        used = _used(kernel, units, named)
        now = [u for u in used if not _may_run_once(u, kernel, named)]
        if now == inside:
            return inside, [u for u in used if u not in inside]
        inside = now


def _used(kernel: set[Function], units: Sequence[Function], named: _Named) -> list[Function]:
    """Those that have to do with a variable of the kernel, or of another one of them."""
    about = {unit: named.variables(unit) for unit in units}
    variables, used = named.variables(*kernel), set[Function]()
    while further := {u for u in about.keys() - used if not variables.isdisjoint(about[u])}:
        used |= further
        variables.update(*(about[u] for u in further))
    return [u for u in units if u in used]


class _Named:
    """What functions and constants name. Each is looked through once, so that none may change meanwhile."""

    def mentioned(self, *functions: Function) -> set[Function]:
        """Functions with bodies, and all that they name, themselves or in tables."""
        return {v for v in self.reached(*functions) if isinstance(v, Function)}

    def variables(self, *functions: Function) -> set[Value]:
        """The variables that functions lead to, and that may change."""
        found = self.reached(*functions)
        return {v for v in found if isinstance(v, GlobalVariable) and not v.is_constant and v.initializer}

    @remembered
    def by_constants(self, function: Function) -> set[Value]:
        """What the constants of a function lead to, but for functions that it names itself."""
        constants = {v for i in function.instructions() for v in i.operands if isinstance(v, _NAMING)}
        return set[Value]().union(*map(self.reached, constants))

    @remembered
    def reached(self, *values: Value) -> set[Value]:
        """Functions with bodies and variables to which constants lead."""
        found = reached(values, self._by)
        return {v for v in found if isinstance(v, GlobalVariable) or (isinstance(v, Function) and not v.is_declaration)}

    @remembered
    def _by(self, value: Value) -> Collection[Value]:
        match value:
            case Function():
                named = (v for i in value.instructions() for v in i.operands if isinstance(v, (Function, *_NAMING)))
                return dict.fromkeys(named).keys()
            case GlobalVariable(initializer=Constant() as part) | GlobalAlias(target=Constant() as part):
                return [part]
            case _:
                return parts_of(value)


def _hidden_uses(root: Function, units: Sequence[Function], named: _Named) -> bool:
    """Whether functions that are called by address lead to variables: those stay shared between calls."""
    taken: set[Value] = set()
    for value in named.reached(root, *units):
        if isinstance(value, GlobalVariable) and value.initializer is not None:
            taken.update(named_functions(value.initializer))
        for instruction in value.instructions() if isinstance(value, Function) else ():
            if _registration(instruction) is None:
                operands = instruction.arguments if isinstance(instruction, I.CallBase) else instruction.operands
                taken.update(f for v in operands for f in named_functions(v))
    return bool(named.variables(*(f for f in taken if isinstance(f, Function))))


def _may_run_once(unit: Function, kernel: set[Function], named: _Named) -> bool:
    """Whether it makes numbers that the kernel only reads: it calls nothing that it does not say, but mathematics."""
    own = named.mentioned(unit)
    calls = [i for f in own for i in f.instructions() if isinstance(i, I.CallBase)]
    if any(not isinstance(c.callee, Function) for c in calls) or any(_opaque(c.callee) for c in calls):
        return False
    variables = named.variables(unit)
    for function in kernel - own:
        if not variables.isdisjoint(named.by_constants(function)) and not _only_reads(function, variables, named):
            return False
    return True


def _opaque(callee: Value) -> bool:
    """A function without a body that may do more than compute numbers of numbers."""
    assert isinstance(callee, Function)
    if not callee.is_declaration or callee.name.startswith("llvm."):
        return False
    kind = callee.function_type
    return not T.is_float(kind.result) or not all(T.is_float(t) or T.is_int(t) for t in kind.parameters)


def _only_reads(function: Function, variables: set[Value], named: _Named) -> bool:
    """Whether a function does nothing but load from variables."""
    pointers: set[Value] = set()
    for instruction in function.instructions():
        reached = set[Value]().union(*(named.reached(v) for v in instruction.operands if isinstance(v, _NAMING)))
        if variables.isdisjoint(reached) and pointers.isdisjoint(instruction.operands):
            continue
        through_table = any(isinstance(v, GlobalVariable) and v.is_constant for v in reached)
        if through_table or not isinstance(instruction, I.Load | I.GetElementPtr):
            return False
        if isinstance(instruction, I.GetElementPtr):
            pointers.add(instruction)
    return True


def _run_once(module: Module, units: Sequence[Function]) -> None:
    """Makes them a constructor of the module's, of functions that nothing else calls."""
    own = sorted(_Named().mentioned(*units), key=lambda f: f.name)
    copies: dict[Value, Value] = {}
    for function in own:
        copy = clone_function(function, f"{function.name}.once")
        copy.prefix = ("internal",)
        module.functions[copy.name] = copy
        copies[function] = copy
    for copy in copies.values():
        assert isinstance(copy, Function)
        replace_operands(copy.instructions(), copies)
    at = Builder(BasicBlock(name="start"))
    for unit in units:
        at.call(copies[unit], [], _NOTHING)
    at.ret()
    whole = define(module, _ONCE, T.VOID, [], [at.block])
    row = T.StructType((T.I32, T.PTR, T.PTR))
    one = ConstantAggregate(row, [const_int(T.I32, 65535), whole, ConstantNull(T.PTR)])
    rows = T.ArrayType(1, row)
    table = GlobalVariable(T.PTR, rows, ConstantAggregate(rows, [one]), prefix=("appending",), name=_CONSTRUCTORS)
    module.globals[_CONSTRUCTORS] = table


def _registration(instruction: I.Instruction) -> tuple[Value, Value] | None:
    """The function that destroys an object, and its address, where a call registers both for the end."""
    if not isinstance(instruction, I.Call) or instruction.callee.name not in _AT_EXIT:
        return None
    destroy, item = instruction.arguments[:2]
    return (destroy, item) if isinstance(destroy, Function) and isinstance(item, Constant) else None


def _destroy_at_the_end(module: Module, root: Function, inside: Sequence[Function]) -> None:
    """What is registered to be destroyed at the end of the process is destroyed at the end of the call, if it was."""
    registered: list[tuple[Value, Value, GlobalVariable]] = []

    def change_of(instruction: I.Instruction) -> Change | None:
        found = _registration(instruction)
        if found is None:
            return None
        name = f"je.alive.{len(registered)}"
        flag = GlobalVariable(T.PTR, T.I8, const_int(T.I8, 0), False, ("internal",), name=name)
        module.globals[name] = flag
        registered.append((*found, flag))

        def change(builder: Builder) -> Value:
            builder.store(const_int(T.I8, 1), flag, 1)
            return const_int(instruction.type, 0)

        return change

    named = _Named()
    order = dict.fromkeys(f for u in [*inside, root] for f in sorted(named.mentioned(u), key=lambda f: f.name))
    for function in order:
        rewrite(function, change_of)
    for block in [b for b in root.blocks if isinstance(b.terminator, I.Return)]:
        for destroy, item, flag in reversed(registered):
            block = _destroy(root, block, destroy, item, flag)


def _destroy(root: Function, block: BasicBlock, destroy: Value, item: Value, flag: GlobalVariable) -> BasicBlock:
    """In front of the end of a block; the block in which that is then."""
    rest = split_before(root, block, len(block.instructions) - 1)
    gone = BasicBlock(name="destroy")
    root.blocks.insert(root.blocks.index(rest), gone)
    at = Builder(block)
    alive = at.icmp("ne", at.load(T.I8, flag, 1), const_int(T.I8, 0))
    at.cond_br(alive, gone, rest)
    at.block = gone
    at.call(destroy, [item], T.FunctionType(T.VOID, (T.PTR,)))
    at.br(rest)
    return rest
