"""Code without its output: for derivatives of what has been run already, and has printed what it prints.

before    %n = call i32 (ptr, ...) @printf(ptr @.str, double %x)       after    (nothing)
          %c = call i64 @fwrite(ptr %p, i64 8, i64 %n, ptr %f)                  (nothing; %n where %c is used)
          %f = call ptr @fopen(ptr %name, ptr @w)                               %f = call ptr @fopen(ptr %name, ptr @a)

The code goes the way that it went: a function that prints returns what it returns where nothing fails. A file that the
code has written stays what it is; where the code may read files, it writes them again.
"""

from __future__ import annotations

from jax_enzyme.analysis.files import Files
from jax_enzyme.analysis.fortran_io import NEW_UNIT, Statement, asks_files, statement
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name, constant_bytes, declared_name
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import ConstantString, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.rules.files import OPENS, printer, reads
from jax_enzyme.rules.streams import puts_out
from jax_enzyme.rules.user import rules_of
from jax_enzyme.transform.rewriting import Change, rewrite


def drop_output(module: Module) -> Module:
    """A copy of the module whose functions print nothing; the module itself where none does."""
    files = Files(module.functions.values(), rules_of(module))
    silent = {i for f in module.functions.values() for i in f.instructions() if _prints(module, files, i)}
    if not silent:
        return module
    copy, twins = clone_with_map(module)
    silent = {twins[i] for i in silent}
    declarations = Declarations(copy)
    functions = list(copy.functions.values())
    used = {operand for f in functions for i in f.instructions() for operand in i.operands}

    def change_of(instruction: I.Instruction) -> Change | None:
        if instruction not in silent:
            return None
        if instruction.opcode == "call" and instruction.operands[-1].name == NEW_UNIT:
            return lambda at: _give_unit(at, instruction)
        return lambda at: _returned(at, instruction, declarations) if instruction in used else None

    for function in functions:
        rewrite(function, change_of)
    if not files.are_read:
        _keep_files(copy)
    return copy


def is_repeatable(module: Module) -> bool:
    """Whether functions do the same each time, and nothing that is seen outside: they print nothing, use no files, draw
    no random numbers and read no clock."""
    instructions = (i for f in module.functions.values() for i in f.instructions())
    return not asks_files(module) and not any(map(_is_seen, instructions))


def _is_seen(instruction: I.Instruction) -> bool:
    name = declared_name(instruction)
    if not name or not isinstance(instruction, I.CallBase):
        return False
    if (kind := statement(instruction)) is not None:
        return kind is not Statement.OTHER
    if effect(name) in (Effect.OUTPUT, Effect.READ_CLOCK) or reads(name) or "random" in name.lower():
        return True
    return puts_out(name) and _is_global_stream(instruction.operands[0])


def _returned(at: Builder, call: I.Instruction, declarations: Declarations) -> Value:
    """What a function that prints returns where nothing fails."""
    name, given = call.operands[-1].name, call.operands[:-1]
    known = printer(name)
    if known.count is not None:
        value = given[known.count]
        return value if value.type == T.I64 else at.binary("and", value, const_int(value.type, 255))
    if known.format is None:
        return zero(call.type)
    # As many characters as there would be.
    listed = name.lstrip("_").startswith("v")
    parameters = (T.PTR, T.I64, T.PTR, *([T.PTR] if listed else []))
    type_ = T.FunctionType(T.I32, parameters, variadic=not listed)
    measure = declarations.function("vsnprintf" if listed else "snprintf", type_)
    return at.call(measure, [zero(T.PTR), zero(T.I64), *given[known.format :]], type_)


def _keep_files(module: Module) -> None:
    """Opened again, a file is not emptied."""
    for call in (i for f in module.functions.values() for i in f.instructions()):
        if callee_name(call) not in OPENS:
            continue
        mode = constant_bytes(call.operands[1])
        if mode is not None and mode.startswith(b"w"):
            call.operands[1] = _mode(module, b"a" + mode[1:].replace(b"x", b""))


def _mode(module: Module, data: bytes) -> GlobalVariable:
    name = f"je.mode.{data.rstrip(bytes(1)).decode()}"
    if name not in module.globals:
        type_ = T.ArrayType(len(data), T.I8)
        text = ConstantString(type_, data)
        module.globals[name] = GlobalVariable(T.PTR, type_, text, True, ("private", "unnamed_addr"), name=name)
    return module.globals[name]


def _give_unit(at: Builder, call: I.Instruction) -> None:
    """The number of a file that is not opened: what would use it is gone as well."""
    size = int_value(call.operands[2]) or 4
    at.store(zero(T.IntType(8 * size)), call.operands[1], 1)


def _prints(module: Module, files: Files, instruction: I.Instruction) -> bool:
    name = declared_name(instruction)
    if not name or not isinstance(instruction, I.Call):
        return False
    kind = statement(instruction)
    if kind is not None:
        return kind is Statement.CONSOLE or (kind is Statement.FILE and not asks_files(module))
    if effect(name) is Effect.OUTPUT:
        return files.goes_to_console(instruction) or not files.are_read
    return puts_out(name) and _is_global_stream(instruction.operands[0])


def _is_global_stream(stream: Value) -> bool:
    """Whether a stream is one of the process. What goes into a local one is text that the kernel may read."""
    found = Reached([stream])
    for value in found:
        match value:
            case GlobalVariable(initializer=None):
                pass
            case I.GetElementPtr():
                found.add(value.operands[:1])
            case I.Phi() | I.Select():
                found.add(I.merged(value))
            case I.Call(callee=Function(name=name)) if puts_out(name):
                found.add(value.operands[:1])  # it returns its stream
            case _:
                return False
    return True
