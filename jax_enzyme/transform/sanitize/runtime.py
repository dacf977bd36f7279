"""What the checks call (`csrc/checked.cc`), and the texts that they hand over."""

from __future__ import annotations

from functools import cached_property

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import function_location, location
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import ConstantNull, ConstantString, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.failure_sites import TERMINATED, add_message
from jax_enzyme.transform.sanitize.scalars import packed_widths

_ACTS = ("nounwind",)
# What allocates and frees is handed the tables, which it changes; of what is not said it changes nothing that the
# kernel reads: memory that is freed stays as it is as long as a check lets a read of it pass.
_KEEPS = ("nounwind", "willreturn", "memory(argmem: readwrite, inaccessiblemem: readwrite)")
# What tells of a failure reads memory, and writes none that the kernel can reach: where a status of 0 lets the kernel
# go on, all that it has read is still so.
_TELLS = ("nounwind", "willreturn", "cold", "memory(read, inaccessiblemem: readwrite)")
_ASKS = ("nounwind", "willreturn", "memory(read, inaccessiblemem: readwrite)")
_SAYS = ("nounwind", "willreturn", "memory(read, argmem: readwrite, inaccessiblemem: readwrite)")
_KEEPING = frozenset(("object", "malloc", "calloc", "aligned_alloc", "free", "realloc", "hand_over"))
# Of objects they keep the address as a number, which is compared and never used to get there: LLVM may take for granted
# that no pointer from elsewhere leads to a variable that the kernel itself shows to nobody.
_SHOWN = {"object": 1, "fill": 0, "rows_inside": 7, "rows_apart": 6}
_FRESH = frozenset(("malloc", "calloc", "aligned_alloc", "realloc"))  # what they give lies where nothing else does
_TYPES: dict[str, tuple[T.Type, tuple[T.Type, ...], tuple[str, ...]]] = {
    "begin": (T.VOID, (T.I64, T.I1), _ACTS),
    "end": (T.VOID, (), _ACTS),
    "flag": (T.PTR, (), ("nounwind", "willreturn", "memory(none)")),
    "stopped": (T.I64, (T.PTR,), ("nounwind", "cold")),
    "fill": (T.VOID, (T.PTR, T.I64), ("nounwind", "willreturn", "memory(argmem: write, inaccessiblemem: read)")),
    "object": (T.PTR, (T.PTR, T.PTR, T.I64, T.PTR), _KEEPS),
    "malloc": (T.PTR, (T.PTR, T.I64), _KEEPS),
    "calloc": (T.PTR, (T.PTR, T.I64, T.I64), _KEEPS),
    "aligned_alloc": (T.PTR, (T.PTR, T.I64, T.I64), _KEEPS),
    "free": (T.I64, (T.PTR, T.PTR, T.PTR), _KEEPS),
    "realloc": (T.PTR, (T.PTR, T.PTR, T.I64, T.PTR, T.PTR), _KEEPS),
    "hand_over": (T.VOID, (T.PTR, T.PTR), _KEEPS),
    "outside": (T.I64, (T.PTR, T.I64, T.I64, T.I64, T.I64, T.I64, T.I32, T.PTR, T.PTR), _TELLS),
    "region": (T.I64, (T.PTR, T.I64, T.I64, T.I32, T.PTR), _ASKS),
    "text": (T.I64, (T.PTR, T.I64, T.I64, T.PTR), _ASKS),
    "length": (T.I64, (T.I64, T.I64), _ASKS),
    "unwritten": (T.I64, (T.PTR, T.I64, T.I64, T.I64, T.PTR, T.PTR), _TELLS),
    "narrow": (T.I64, (T.PTR, T.I64, T.I64, T.I64, T.PTR, T.PTR), _TELLS),
    "narrow_many": (T.VOID, (T.I32,), ("nounwind", "willreturn", "memory(inaccessiblemem: readwrite)")),
    "noted": (T.I64, (T.PTR,), _TELLS),
    "again": (T.I1, (T.I64,), _ACTS),
    "compares": (T.I1, (), _ACTS),
    "rows_inside": (T.I32, (*(T.I64,) * 7, T.PTR), _SAYS),
    "rows_apart": (T.I32, (*(T.I64,) * 6, T.PTR, T.I64), _ASKS),
    "written": (T.I64, (T.PTR, T.I64, T.I64, T.PTR, T.PTR), _ASKS),
}


class Runtime:
    """Calls of these functions, in one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._declarations = Declarations(module)
        self._texts: dict[str, GlobalVariable] = {}
        self._failures: dict[str, int] = {}

    @cached_property
    def packed(self) -> frozenset[int]:
        """See `packed_widths`."""
        return packed_widths(self.module.functions.values())

    def call(self, at: Builder, name: str, *arguments: Value) -> Value:
        result, parameters, attributes = _TYPES[name]
        function = self._declarations.function(f"je_checked_{name}", T.FunctionType(result, parameters), attributes)
        if name in _FRESH:
            function.return_attributes = ("noalias",)
        if name in _SHOWN:
            function.arguments[_SHOWN[name]].attributes = ("captures(none)",)
        tables = [self.call(at, "flag")] if name in _KEEPING else []
        return at.call(function, [*tables, *arguments])

    def text(self, words: str) -> Value:
        """The address of a text."""
        if words not in self._texts:
            data = words.encode() + b"\0"
            type_ = T.ArrayType(len(data), T.I8)
            made = GlobalVariable(T.PTR, type_, ConstantString(type_, data), True, ("private", "unnamed_addr"))
            number = len(self._texts)
            while (name := f"je.words.{number}") in self.module.globals:
                number += 1
            made.name = name
            self.module.globals[name] = self._texts[words] = made
        return self._texts[words]

    def place(self, of: I.Instruction | Function) -> Value:
        """The text of where an instruction comes from, or a function is defined."""
        found = location(self.module, of) if isinstance(of, I.Instruction) else function_location(self.module, of)
        return ConstantNull(T.PTR) if found is None else self.text(found)

    def failure(self, what: str, instruction: I.Instruction, function: Function | None = None) -> Value:
        """The status of a failure that has a text of its own. `function`: the place is where it is defined."""
        found = location(self.module, instruction) if function is None else function_location(self.module, function)
        text = f"{what} ({found})" if found else what
        if text not in self._failures:
            self._failures[text] = add_message(self.module, text)
        return const_int(T.I64, TERMINATED << 32 | self._failures[text])
