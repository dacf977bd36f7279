"""What passes that rewrite a private copy have in common: splitting blocks, moving edges, dropping what is dead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Atom, Iteration, Polynomial, emit
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone, own
from jax_enzyme.ir.marks import is_common, mark_common
from jax_enzyme.ir.metadata import DebugRecord, MDConstant, MDNode, MDNull, MDValue
from jax_enzyme.ir.module import Function, Module, take_apart
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantInt, Value
from jax_enzyme.rules.declare import Declarations


def phis(block: BasicBlock) -> list[I.Phi]:
    """The phis at the start of a block."""
    return [i for i in block.instructions if isinstance(i, I.Phi)]


def redirect_phis(block: BasicBlock, old: BasicBlock, new: BasicBlock) -> None:
    """The edge into a block that came from `old` now comes from `new`."""
    for phi in phis(block):
        phi.targets = [new if b is old else b for b in phi.targets]


def drop_edge(block: BasicBlock, source: BasicBlock) -> None:
    """One edge from `source` into a block is gone."""
    for phi in phis(block):
        if source in phi.targets:
            at = phi.targets.index(source)
            del phi.targets[at], phi.operands[at]


def go_one_way(block: BasicBlock, target: BasicBlock) -> None:
    """The branch at the end of a block goes to one of its targets in any case, in place."""
    last = block.instructions.pop()
    for other in dict.fromkeys(last.targets):
        if other is not target:
            drop_edge(other, block)
    Builder(block).br(target)
    block.terminator.metadata = [m for m in last.metadata if m[0] != "prof"]
    block.terminator.records = last.records


def split_edge(function: Function, source: BasicBlock, target: BasicBlock) -> BasicBlock:
    """Puts a block of its own on the way from one block to another, behind the one."""
    between = BasicBlock(name="between")
    Builder(between).br(target)
    function.blocks.insert(function.blocks.index(source) + 1, between)
    source.terminator.targets = [between if t is target else t for t in source.terminator.targets]
    redirect_phis(target, source, between)
    return between


def local(function: Function, type_: T.Type, align: int | None = None, name: str = "") -> Value:
    """Memory of one call of a function."""
    memory = Builder.on_top(function).alloca(type_, align=align)
    memory.name = name
    return memory


def count_iterations(loop: Loop, before: Iterable[BasicBlock]) -> I.Phi:
    """A new phi of a loop with one latch: the number of the iteration, from 0 on. `before` are the blocks from which it
    is entered."""
    (latch,) = loop.latches
    zero = ConstantInt(T.I64, 0)
    number = I.Phi(T.I64, "phi", [], targets=[])
    number.incoming = [(zero, block) for block in before]
    loop.header.instructions.insert(0, number)
    number.add(Builder.at_end(latch).binary("add", number, ConstantInt(T.I64, 1), ("nuw", "nsw")), latch)
    return number


def computed_before(at: Builder, number: Polynomial, counts: Mapping[Loop, Value] = MappingProxyType({})) -> Value:
    """An integer that does not change in a loop, such as how often it runs, computed in front of it. Loops around it
    have a preheader and one latch; of some there are the numbers of their iterations already, in `counts`."""

    def operand(atom: Atom) -> Value:
        if isinstance(atom, Iteration):
            if atom.loop in counts:
                return counts[atom.loop]
            before = atom.loop.front
            return count_iterations(atom.loop, [before])
        return at.cast("ptrtoint", atom.value, T.I64) if T.is_pointer(atom.value.type) else atom.value

    return emit(at, number, T.I64, operand)


def split_before(function: Function, block: BasicBlock, index: int, name: str = "") -> BasicBlock:
    """Moves the instructions from `index` on into a new block behind; the old one is left without a terminator."""
    rest = BasicBlock(name=name or (f"{block.name}.rest" if block.name else ""))
    rest.instructions = block.instructions[index:]
    del block.instructions[index:]
    function.blocks.insert(function.blocks.index(block) + 1, rest)
    for successor in dict.fromkeys(rest.successors):
        redirect_phis(successor, block, rest)
    return rest


def remove_unreachable(function: Function) -> None:
    """Removes the blocks that control cannot reach, and what came from them."""
    cfg = Cfg(function)
    dead = {b for b in function.blocks if not cfg.is_reachable(b)}
    if not dead:
        return
    function.blocks = [b for b in function.blocks if b not in dead]
    for block in function.blocks:
        for phi in phis(block):
            phi.incoming = [(v, b) for v, b in phi.incoming if b not in dead]


def replace_operands(instructions: Iterable[I.Instruction], replaced: Mapping[Value, Value]) -> None:
    """Operands of some instructions become what they map to, in place."""
    for instruction in instructions:
        instruction.operands[:] = [replaced.get(v, v) for v in instruction.operands]


def replace_values(function: Function, replaced: Mapping[Value, Value]) -> None:
    """Every use of a value becomes one of what it maps to (chains are followed), debug records included."""
    if not replaced:
        return
    final = {old: _last(replaced, old) for old in replaced}
    replace_operands(function.instructions(), final)
    for instruction in function.instructions():
        if isinstance(instruction, I.CallBase):
            instruction.bundles = [(tag, [final.get(v, v) for v in vs]) for tag, vs in instruction.bundles]
        for record in instruction.records:
            record.operands[:] = [_renewed(operand, final) for operand in record.operands]
    for record in function.trailing_records:
        record.operands[:] = [_renewed(operand, final) for operand in record.operands]


def substitute(function: Function, replaced: Mapping[Value, Value]) -> None:
    """Every use of an instruction becomes one of what it maps to, and the instruction goes."""
    replace_values(function, replaced)
    for block in function.blocks if replaced else ():
        block.instructions = [i for i in block.instructions if i not in replaced]


def _last(replaced: Mapping[Value, Value], value: Value) -> Value:
    while value in replaced:
        value = replaced[value]
    return value


def _renewed(operand: MDValue, replaced: Mapping[Value, Value]) -> MDValue:
    match operand:
        case MDConstant(value) if value in replaced:
            return MDConstant(replaced[value])
        case MDNode("DIArgList", fields=fields):
            return MDNode(
                "DIArgList", fields=[(n, f if isinstance(f, str) else _renewed(f, replaced)) for n, f in fields]
            )
        case _:
            return operand


_PURE = (
    I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.Freeze, I.Phi, I.GetElementPtr, I.Load, I.ExtractElement,
    I.InsertElement, I.ShuffleVector,
)  # fmt: skip


def remove_dead(function: Function) -> None:
    """Removes loads and arithmetic that nothing needs, also where they need one another in a circle."""

    def needs(value: Value) -> list[Value]:
        held = [v for _, values in value.bundles for v in values] if isinstance(value, I.CallBase) else []
        return [*made_of(value), *held]

    needed: list[Value] = [
        i for i in function.instructions() if not isinstance(i, _PURE) or (isinstance(i, I.Load) and not I.is_plain(i))
    ]
    alive = reached(needed, needs)
    dead: set[Value] = {i for i in function.instructions() if i not in alive}
    if dead:
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if i in alive]
        forget_records(function, dead)


def forget_records(function: Function, gone: set[Value]) -> None:
    """Drops the debug records that speak of values which no longer exist."""
    for instruction in function.instructions():
        if instruction.records:
            instruction.records = tuple(r for r in instruction.records if not _speaks_of(r, gone))
    function.trailing_records = [r for r in function.trailing_records if not _speaks_of(r, gone)]


def _speaks_of(record: DebugRecord, gone: set[Value]) -> bool:
    def named(operand: MDValue | str) -> bool:
        match operand:
            case MDConstant(value):
                return value in gone
            case MDNode("DIArgList", fields=fields):
                return any(named(f) for _, f in fields)
            case _:
                return False

    return any(not isinstance(o, MDNull) and named(o) for o in record.operands)


def locate(old: I.Instruction, new: Iterable[I.Instruction]) -> None:
    """Gives new instructions the source position of the old one, and no other metadata."""
    position = [(kind, node) for kind, node in old.metadata if kind == "dbg"]
    for instruction in new:
        instruction.metadata = list(position)


def place(old: I.Instruction, new: list[I.Instruction]) -> None:
    """Gives new instructions the source position of the old one, and the first its debug records."""
    locate(old, new)
    if new:
        new[0].records = (*old.records, *new[0].records)


def call_like(call: I.CallBase, callee: Value, arguments: Iterable[Value]) -> I.Call:
    """A call of a function in the way of another one, with its place in the source; without a name."""
    return I.Call(
        call.type,
        "call",
        [*arguments, callee],
        call.function_type,
        call.calling_convention,
        call.return_attributes,
        list(call.parameter_attributes),
        call.attributes,
        list(call.bundles),
        flags=call.flags if isinstance(call, I.Call) else (),
        metadata=list(call.metadata),
    )


Change = Callable[[Builder], Value | None]


def on_copy(function: ArrayFunction, change: Callable[[Module, Function], bool]) -> ArrayFunction:
    """The array function after a change of its module and of itself, made in a copy, in place; the function itself
    where that changed nothing."""
    module = clone(function.module)
    if change(module, module.functions[function.symbol]):
        return replace(function, module=module)
    take_apart(module)
    return function


def on_functions(module: Module, is_due: Callable[[Function], object], change: Callable[[Function], object]) -> Module:
    """A copy of the module whose functions are changed, each in place; the module itself where none is due."""
    if not any(is_due(f) for f in module.functions.values()):
        return module
    copy = clone(module)
    for function in list(copy.functions.values()):
        change(function)
    return copy


def lower(module: Module, change_of: Callable[[I.Instruction, Declarations], Change | None]) -> Module:
    """A copy of the module, rewritten wherever there is a change; the module itself where there is none, or where it is
    spent."""
    declarations = Declarations(module)
    if not any(change_of(i, declarations) for f in module.functions.values() for i in f.instructions()):
        return module
    copy = own(module)
    declarations = Declarations(copy)
    for function in list(copy.functions.values()):
        rewrite(function, lambda instruction: change_of(instruction, declarations))
    return copy


def rewrite(function: Function, change_of: Callable[[I.Instruction], Change | None]) -> None:
    """Puts in the place of each instruction that has a change what that builds, in place. The value that it returns
    stands for the instruction's; where it returns none, nothing may use that."""
    replaced: dict[Value, Value] = {}
    gone: set[Value] = set()
    for block in function.blocks:
        old, block.instructions = block.instructions, []
        for instruction in old:
            change = change_of(instruction)
            if change is None:
                block.instructions.append(instruction)
                continue
            start = len(block.instructions)
            value = change(Builder(block))
            made = block.instructions[start:]
            place(instruction, made)
            if value is None:
                gone.add(instruction)
                continue
            replaced[instruction] = value
            if value in made:
                value.name = instruction.name
                if is_common(instruction):
                    mark_common(value)
    replace_values(function, replaced)
    forget_records(function, gone)


def add_parameter(function: Function, name: str, attributes: tuple[str, ...] = (), type_: T.Type = T.PTR) -> Argument:
    """One more parameter of a function, its last, in place."""
    parameter = Argument(type_, attributes, len(function.arguments), name=name)
    function.arguments.append(parameter)
    function.value_type = _longer(function.function_type, type_)
    return parameter


def pass_argument(call: I.CallBase, value: Value) -> None:
    """One more argument of a call, in place: the last for a parameter, in front of what a variadic function takes."""
    named = len(call.function_type.parameters)
    call.operands.insert(named, value)
    call.parameter_attributes.insert(named, ())
    call.function_type = _longer(call.function_type, value.type)


def _longer(kind: T.FunctionType, type_: T.Type) -> T.FunctionType:
    return replace(kind, parameters=(*kind.parameters, type_))


def forget_tails(function: Function) -> None:
    """Takes `tail` from all calls of a function, in place: the word says that no local variable of the caller is
    touched, which stays true only until memory from elsewhere becomes such a variable."""
    for instruction in function.instructions():
        if isinstance(instruction, I.Call):
            instruction.flags = tuple(f for f in instruction.flags if f != "tail")


def kept_attributes(module: Module, words: tuple[str, ...], keep: Callable[[str], bool]) -> tuple[str, ...]:
    """The attributes that `keep` wants; a group (`#3`) stays as it is where it holds nothing else."""
    found: list[str] = []
    for word in words:
        held = module.attribute_groups.get(word[1:], ()) if word[0] == "#" else (word,)
        if all(map(keep, held)):
            found.append(word)
        else:
            found += [w for w in held if keep(w)]
    return tuple(found)
