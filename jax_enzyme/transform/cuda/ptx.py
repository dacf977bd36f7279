"""Inline PTX as IR: arithmetic, conversions, bit fields, loads, stores and atomics of global and shared memory, copies
from one to the other, products of matrices by a warp, and what threads know of themselves.

    asm("{ .reg .u32 t; add.u32 t, %1, 3; lop3.b32 %0, t, %2, %2, 0x96; }" : "=r"(d) : "r"(a), "r"(b))

Instructions are those of the PTX ISA 8.7, chapter 9. One that is not here, a guard (`@p`) of one for which the lanes of
a warp meet and a rounding other than to nearest are refused with the statement that has them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder, const_float, const_int, zero
from jax_enzyme.ir.module import Module, declare
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.cuda import matrices
from jax_enzyme.transform.cuda.library import saturated, within_one

_TYPES: Mapping[str, T.Type] = MappingProxyType(
    {f"{kind}{bits}": T.IntType(bits) for kind in "usb" for bits in (16, 32, 64)}
    | {"f32": T.FLOAT, "f64": T.DOUBLE, "pred": T.I1}
)
_NOTHING = ("prefetch", "prefetchu", "membar", "fence", "discard", "applypriority", "griddepcontrol", "nanosleep")
_IGNORED = frozenset(
    "rn ftz lo approx full global nc ca cg cs lu cv wb wt to volatile relaxed acquire release weak cta gpu sys sync "
    "aligned sat shared shared::cta".split()
)
_CACHES = re.compile(r"L[12](::\w+)+$")
_ADDRESS = re.compile(r"\[\s*([$%\w]+)\s*(?:\+\s*(-?\w+))?\s*\]$")
_FLOATS: Mapping[str, str] = MappingProxyType({"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"})
_CLAMPED = frozenset(("add", "sub", "mul", "fma", "mad", "cvt"))
"""Instructions whose real numbers `.sat` holds between zero and one."""
_EFFECTS = frozenset(("ld", "st", "atom", "red", "trap", "cp"))
"""Instructions that may not be done where a guard says no."""
_MEETINGS = frozenset(("shfl", "mma", "ldmatrix"))
"""Instructions to which the lanes of a warp come together, so that they have no guard."""
_PLAIN = frozenset(("add", "sub", "mul", "and", "or", "xor"))
_EXTREMA = MappingProxyType({("min", True): "slt", ("min", False): "ult", ("max", True): "sgt", ("max", False): "ugt"})
_SHIFTS = MappingProxyType({("shl", s): "shl" for s in (True, False)} | {("shr", True): "ashr", ("shr", False): "lshr"})
_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "ex2": "exp2",
        "lg2": "log2",
        "sin": "sin",
        "cos": "cos",
        "tanh": "tanh",
        "sqrt": "sqrt",
        "fma": "fma",
        "mad": "fma",
        "abs": "fabs",
        "min": "fmin",
        "max": "fmax",
    }
)
_ROUNDINGS: Mapping[str, str] = MappingProxyType({"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"})
_ATOMICS: Mapping[tuple[str, bool], str] = MappingProxyType(
    {("min", False): "umin", ("max", False): "umax"}
    | {
        (name, s): code
        for name, code in (("exch", "xchg"), ("inc", "uinc_wrap"), ("dec", "udec_wrap"))
        for s in (True, False)
    }
)
"""Names of atomic operations in LLVM, where they are others; by whether the number has a sign."""
_UPDATES = frozenset("xchg add sub and or xor fadd fsub min max umin umax fmin fmax uinc_wrap udec_wrap".split())
_ORDERS: Mapping[str, str] = MappingProxyType({"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"})


class Unknown(Exception):
    """A statement that has no meaning here."""


@dataclass
class Statements:
    """`register` builds the value of a special register, `shuffle` what a lane gets: from the mode, its value, the
    offset and the clamp; `shared` the pointer of an address of 32 bits, and `branch` a way on which something is done
    where a condition holds: it calls what builds that, and gives the blocks from which both ways come together."""

    module: Module
    at: Builder
    register: Callable[[str], Value]
    shuffle: Callable[[str, Value, Value, Value], Value]
    shared: Callable[[Value], Value]
    branch: Callable[[Value, Callable[[], None]], tuple[V.BasicBlock, V.BasicBlock]]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    types: dict[str, T.Type] = field(default_factory=dict[str, T.Type])

    def run(self, asm: V.InlineAsm, arguments: Sequence[Value], result: T.Type) -> Value | None:
        """Builds what the statements do; what they give, if anything. Raises Unknown with one that is not known."""
        constraints = [c for c in asm.constraints.split(",") if c and not c.startswith("~")]
        outputs = [n for n, c in enumerate(constraints) if c.startswith("=")]
        kinds = list(result.elements) if isinstance(result, T.StructType) else [result][: len(outputs)]
        if any("*" in c for c in constraints) or len(kinds) != len(outputs):
            raise Unknown(asm.constraints)
        for number, kind in zip(outputs, kinds, strict=True):
            self.types[f"${number}"] = kind
        given = iter(arguments)
        for number, constraint in enumerate(constraints):
            if number not in outputs:
                value = next(given)
                self.values[f"${number}"] = value
                if constraint.isdigit():
                    self.values[f"${constraint}"] = value
        for statement in _statements(asm.template):
            self._statement(statement)
        made = [self.values.get(f"${n}") for n in outputs]
        if not made:
            return None
        found = [m if m is not None else zero(k) for m, k in zip(made, kinds, strict=True)]
        if not isinstance(result, T.StructType):
            return found[0]
        return self.at.pack(result, found)

    # -- operands

    def _read(self, text: str, kind: T.Type) -> Value:
        if text in self.values:
            return self._as(self.values[text], kind)
        if text.startswith("%"):
            return self._as(self.register(text[1:]), kind)
        try:
            if text.lower().startswith(("0f", "0d")):
                bits = bytes.fromhex(text[2:])
                if _width(kind) != 8 * len(bits):
                    raise Unknown(text)
                if isinstance(kind, T.IntType):
                    return const_int(kind, int.from_bytes(bits))
                (number,) = struct.unpack(">f" if text[1] in "fF" else ">d", bits)
                return const_float(kind, number)
            if T.is_float(kind):
                return const_float(kind, float(text))
            number = int(text.rstrip("uU"), 0)
        except (ValueError, struct.error):
            raise Unknown(text) from None
        return const_int(kind, number)

    def _as(self, value: Value, kind: T.Type) -> Value:
        """The same bits with another type."""
        if value.type == kind:
            return value
        if isinstance(value.type, T.PointerType) or isinstance(kind, T.PointerType):
            pointer = isinstance(kind, T.PointerType)
            return self.at.cast("inttoptr" if pointer else "ptrtoint", value, kind)
        if _width(value.type) != _width(kind):
            raise Unknown(f"{value.type} for {kind}")
        return self.at.cast("bitcast", value, kind)

    def _write(self, text: str, value: Value) -> None:
        if text not in self.types:
            raise Unknown(text)
        self.values[text] = self._as(value, self.types[text])

    def _address(self, text: str) -> Value:
        """An address in shared memory has 32 bits, or is the pointer itself in 64."""
        match = _ADDRESS.match(text)
        if match is None or match[1] not in self.values:
            raise Unknown(text)
        given = self.values[match[1]]
        base = self.shared(given) if given.type == T.I32 else self._as(given, T.PTR)
        return self.at.offset(base, int(match[2], 0)) if match[2] else base

    # -- statements

    def _statement(self, text: str) -> None:
        opcode, _, rest = text.partition(" ")
        if opcode.startswith("@"):
            self._guarded(text, opcode[1:], rest)
            return
        name, *words = opcode.split(".")
        if name in _NOTHING:
            return
        try:
            if opcode == "trap":
                Declarations(self.module).invoke(self.at, "llvm.trap", T.VOID)
                return
            if opcode == ".reg":
                kind, _, names = rest.strip().partition(" ")
                for one in _operands(names):
                    self.types[one] = _TYPES[kind.removeprefix(".")]
                return
            if name == "cp":
                self._copy(words, _operands(rest))
                return
            if name in ("mma", "ldmatrix"):
                self._matrices(name, [w for w in words if w not in _IGNORED], _operands(rest))
                return
            does = self._does_within if "sat" in words else self._does
            does(name, [w for w in words if w not in _IGNORED and not _CACHES.match(w)], _operands(rest))
        except (Unknown, KeyError, IndexError, ValueError):
            raise Unknown(text) from None

    def _guarded(self, text: str, guard: str, instruction: str) -> None:
        """`@p` and `@!p`: registers that it sets have another value only where the predicate says so."""
        name = guard.removeprefix("!")
        opcode = instruction.split(" ")[0].split(".")[0]
        if name not in self.values or opcode in _MEETINGS:
            raise Unknown(text)
        condition, before = self._read(name, T.I1), dict(self.values)
        if guard.startswith("!"):
            condition = self.at.binary("xor", condition, const_int(T.I1, 1))
        ways = self.branch(condition, lambda: self._statement(instruction)) if opcode in _EFFECTS else None
        if ways is None:
            self._statement(instruction)
        for register, value in self.values.items():
            # One that had no value has none that a program may read, where the guard says no.
            old = before.get(register, V.Undef(value.type) if ways else value)
            if old is value:
                continue
            old = self._as(old, value.type)
            joined = self.at.phi(value.type, list(zip((value, old), ways, strict=True))) if ways else None
            self.values[register] = joined or self.at.select(condition, value, old)

    def _does(self, name: str, words: list[str], operands: list[str]) -> None:
        at = self.at
        kind = _TYPES[words[-1]]
        signed = words[-1].startswith("s")
        match name, words[:-1]:
            case "ld", vector:
                places = _several(operands[0], vector)
                address = self._address(operands[1])
                for n, one in enumerate(places):
                    self._write(one, at.load(kind, at.offset(address, n * _width(kind) // 8)))
                return
            case "st", vector:
                values = _several(operands[1], vector)
                address = self._address(operands[0])
                for n, one in enumerate(values):
                    at.store(self._read(one, kind), at.offset(address, n * _width(kind) // 8))
                return
            case "shfl", [("idx" | "bfly" | "up" | "down") as mode]:
                (*_, offset, clamp), value = operands[:4], self.values[operands[1]]
                self._write(operands[0], self.shuffle(mode, value, self._read(offset, T.I32), self._read(clamp, T.I32)))
                return
            case "setp", [order]:
                x, y = (self._read(o, kind) for o in operands[1:])
                self._write(operands[0], self._compared(order, signed, x, y))
                return
            case "selp", []:
                condition = self._read(operands[3], T.I1)
                chosen = at.select(condition, self._read(operands[1], kind), self._read(operands[2], kind))
                self._write(operands[0], chosen)
                return
            case "mul" | "mad", [("wide" | "hi") as part] if isinstance(kind, T.IntType):
                self._write(operands[0], self._product(kind, signed, part, operands[1:]))
                return
            case "cvt", [*rounding, to]:
                self._write(operands[0], self._converted(self._read(operands[1], kind), signed, to, rounding))
                return
            case "atom" | "red", [operation, *vector]:
                results = _several(operands.pop(0), vector) if name == "atom" else []
                self._update(operation, kind, signed, vector, results, operands)
                return
            case _, []:
                pass
            case _:
                raise Unknown(name)
        given = [self._read(o, kind if n < 1 or name not in _COUNTED else T.I32) for n, o in enumerate(operands[1:])]
        self._write(operands[0], self._value(name, kind, given, signed))

    def _does_within(self, name: str, words: list[str], operands: list[str]) -> None:
        """`.sat`: real numbers between zero and one, integers between the ends of their range."""
        kind = _TYPES[words[-2 if name == "cvt" else -1]]
        if T.is_float(kind) and name in _CLAMPED:
            self._does(name, words, operands)
            self._write(operands[0], within_one(self.at, [self._read(operands[0], kind)]))
        elif words == ["s32"] and name in ("add", "sub"):
            given = [self._read(o, kind) for o in operands[1:]]
            made = Declarations(self.module).invoke(self.at, f"llvm.s{name}.sat.i32", kind, given)
            self._write(operands[0], made)
        else:
            raise Unknown(name)

    def _copy(self, words: list[str], operands: list[str]) -> None:
        """`cp.async` copies at once, so that nothing waits for it. Behind the bytes that are read are zeros."""
        match [w for w in words if w not in _IGNORED and not _CACHES.match(w)]:
            case ["async", "commit_group" | "wait_group" | "wait_all"]:
                return
            case ["async"] if words[1:2] in (["ca"], ["cg"]):
                to, size = self._address(operands[0]), self._read(operands[2], T.I32)
                memory, source = Declarations(self.module), self._address(operands[1])
                if len(operands) > 3:
                    memory.memory(self.at, "memset", to, const_int(T.I8, 0), self.at.cast("zext", size, T.I64))
                    size = self._read(operands[3], T.I32)
                memory.memory(self.at, "memcpy", to, source, self.at.cast("zext", size, T.I64))
            case _:
                raise Unknown(words)

    def _matrices(self, name: str, words: list[str], operands: list[str]) -> None:
        registers = [_operands(text.strip("{} ")) for text in operands]
        lane = self.register("laneid")
        warp = matrices.Warp(
            self.at, lane, lambda value, source: self.shuffle("idx", value, source, const_int(T.I32, 31))
        )
        if name == "ldmatrix":
            address = self._address(operands[1])
            count, transposed = matrices.loaded(words)
            rows: list[Value] = []

            def load() -> None:
                rows.extend(self.at.load(T.I32, self.at.offset(address, 4 * n)) for n in range(4))

            # Lanes behind those that have a row of a matrix give no address.
            here = self.at.icmp("ult", lane, const_int(T.I32, 8 * count))
            ways = self.branch(here, load)
            made = warp.rows(
                [self.at.phi(T.I32, list(zip((row, zero(T.I32)), ways, strict=True))) for row in rows],
                count,
                transposed,
            )
        else:
            shape = matrices.Shape.of(words)
            a, b, c = (
                [self._read(one, kind) for one in given]
                for given, kind in zip(registers[1:], (shape.held, shape.held, shape.sums), strict=True)
            )
            made = warp.product(shape, a, b, c)
        for register, value in zip(registers[0], made, strict=True):
            self._write(register, value)

    def _value(self, name: str, kind: T.Type, x: list[Value], signed: bool) -> Value:
        if name in ("mov", "cvta"):
            return x[0]
        return self._real(name, kind, x) if T.is_float(kind) else self._integer(name, kind, x, signed)

    def _real(self, name: str, kind: T.Type, x: list[Value]) -> Value:
        at = self.at
        if name in _FUNCTIONS:
            return self._function(_FUNCTIONS[name], x)
        match name:
            case "neg":
                return at.binary("fsub", const_float(kind, -0.0), x[0])
            case "rcp":
                return at.binary("fdiv", const_float(kind, 1.0), x[0])
            case "rsqrt":
                return at.binary("fdiv", const_float(kind, 1.0), self._function("sqrt", x))
            case _:
                return at.binary(_FLOATS[name], x[0], x[1])

    def _integer(self, name: str, kind: T.Type, x: list[Value], signed: bool) -> Value:
        at = self.at
        match name:
            case "mad":
                return at.binary("add", at.binary("mul", x[0], x[1]), x[2])
            case "min" | "max":
                order = _EXTREMA[name, signed]
                return at.select(at.icmp(order, x[0], x[1]), x[0], x[1])
            case "neg":
                return at.binary("sub", zero(kind), x[0])
            case "not":
                return at.binary("xor", x[0], const_int(kind, -1))
            case "shl" | "shr":
                return self._shift(_SHIFTS[name, signed], x[0], x[1])
            case "bfe" if kind == T.I32:
                return self._field(x, signed)
            case "lop3" if kind == T.I32:
                table = V.int_value(x[3])
                if table is None:
                    raise Unknown(name)
                return at.by_table(table, x[:3])
            case _ if name in _PLAIN:
                return at.binary(name, x[0], x[1])
            case _:
                raise Unknown(name)

    def _compared(self, order: str, signed: bool, x: Value, y: Value) -> Value:
        if T.is_float(x.type):
            return self.at.fcmp({"ne": "one", "eq": "oeq"}.get(order) or "o" + _ORDERS[order], x, y)
        predicate = order if order in ("eq", "ne") else ("s" if signed else "u") + _ORDERS[order]
        return self.at.icmp(predicate, x, y)

    def _product(self, kind: T.IntType, signed: bool, part: str, operands: list[str]) -> Value:
        """All bits of a product, or the upper half, and a sum with a third number."""
        at, wide = self.at, T.IntType(2 * kind.bits)
        x, y = (at.cast("sext" if signed else "zext", self._read(o, kind), wide) for o in operands[:2])
        product = at.binary("mul", x, y)
        if part == "hi":
            product = at.cast("trunc", at.binary("lshr", product, const_int(wide, kind.bits)), kind)
        return at.binary("add", product, self._read(operands[2], product.type)) if len(operands) > 2 else product

    def _converted(self, value: Value, signed: bool, to: str, rounding: list[str]) -> Value:
        """`cvt`: a number as one of another type; a real number is rounded to a whole one by `rni` and its like."""
        if to == "tf32" and rounding == ["rna"] and value.type == T.FLOAT:
            return matrices.to_tf32(self.at, value)
        at, kind = self.at, _TYPES[to]
        if rounding:
            (direction,) = rounding
            value = self._function(_ROUNDINGS[direction], [value])
        match T.is_float(value.type), T.is_float(kind):
            case True, True:
                wider, narrower = "fpext", "fptrunc"
            case False, False:
                wider, narrower = "sext" if signed else "zext", "trunc"
            case False, True:
                return at.cast("sitofp" if signed else "uitofp", value, kind)
            case _:
                if not rounding:
                    raise Unknown(to)
                return saturated(self.module, at, value, kind, signed=to.startswith("s"))
        if value.type == kind:
            return value
        return at.cast(wider if _width(kind) > _width(value.type) else narrower, value, kind)

    def _update(
        self, operation: str, kind: T.Type, signed: bool, vector: list[str], results: list[str], operands: list[str]
    ) -> None:
        """`atom` and `red`, of one number or several."""
        if T.is_float(kind):
            operation = _FLOATS.get(operation, operation)
        name, size = _ATOMICS.get((operation, T.is_float(kind) or signed), operation), _width(kind) // 8
        first, rows = self._address(operands[0]), zip(*(_several(o, vector) for o in operands[1:]), strict=True)
        for n, row in enumerate(rows):
            given = [self.at.offset(first, n * size), *(self._read(o, kind) for o in row)]
            if operation == "cas":
                pair = T.StructType((kind, T.I1))
                exchange = self.at.insert(I.CmpXchg(pair, "cmpxchg", given, "monotonic monotonic", size))
                old = self.at.extract_value(exchange, 0, kind)
            elif name in _UPDATES:
                old = self.at.insert(I.AtomicRMW(kind, "atomicrmw", given[:2], name, "monotonic", size))
            else:
                raise Unknown(operation)
            if results:
                self._write(results[n], old)

    def _function(self, name: str, x: list[Value]) -> Value:
        kind = T.FunctionType(x[0].type, tuple(v.type for v in x))
        symbol = name + "f" if x[0].type == T.FLOAT else name
        words = ("nounwind", "willreturn", "memory(none)")
        return self.at.call(declare(self.module, symbol, kind, words), x, kind)

    def _shift(self, opcode: str, value: Value, by: Value) -> Value:
        """By any number: one of all bits or more leaves none, or the sign."""
        at, width = self.at, _width(value.type)
        large = at.icmp("uge", by, const_int(T.I32, width))
        most = at.select(large, const_int(T.I32, width - 1), by)
        wide = most if width == 32 else at.cast("zext" if width > 32 else "trunc", most, value.type)
        made = at.binary(opcode, value, wide)
        return made if opcode == "ashr" else at.select(large, zero(value.type), made)

    def _field(self, x: list[Value], signed: bool) -> Value:
        """`bfe`: bits from a place on, as a number."""
        at = self.at
        wide = at.cast("sext" if signed else "zext", x[0], T.I64)
        first, count = (at.cast("zext", at.binary("and", v, const_int(T.I32, 255)), T.I64) for v in x[1:])
        first = at.select(at.icmp("ugt", first, const_int(T.I64, 32)), const_int(T.I64, 32), first)
        none = at.icmp("eq", count, const_int(T.I64, 0))
        count = at.select(at.icmp("ugt", count, const_int(T.I64, 32)), const_int(T.I64, 32), count)
        above = at.select(none, const_int(T.I64, 63), at.binary("sub", const_int(T.I64, 64), count))
        right = "ashr" if signed else "lshr"
        bits = at.binary(right, at.binary("shl", at.binary(right, wide, first), above), above)
        return at.select(none, const_int(T.I32, 0), at.cast("trunc", bits, T.I32))


_COUNTED = frozenset(("shl", "shr", "bfe"))
"""Instructions whose operands behind the first are 32-bit numbers."""


def _statements(template: str) -> list[str]:
    text = re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), template)
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$\{(\d+)(?::\w+)?\}", r"$\1", text)
    # The braces of a scope, not those of a vector.
    text = re.sub(r"^\s*\{|\}\s*$", " ", text)
    return [" ".join(part.split()) for part in text.split(";") if part.strip()]


def _operands(text: str) -> list[str]:
    """Apart at commas that are not in braces."""
    return [part.strip() for part in re.split(r",(?![^{]*\})", text) if part.strip()]


def _several(text: str, vector: list[str]) -> list[str]:
    if not vector:
        return [text]
    parts = _operands(text.strip("{} "))
    if vector != [f"v{len(parts)}"]:
        raise Unknown(text)
    return parts


def _width(kind: T.Type) -> int:
    if isinstance(kind, T.IntType):
        return kind.bits
    if kind in (T.FLOAT, T.DOUBLE):
        return 32 if kind == T.FLOAT else 64
    raise Unknown(str(kind))
