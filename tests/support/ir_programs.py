"""Random programs in LLVM IR: blocks that jump anywhere, vectors, bits of numbers copied as integers.

A program is a set of blocks over variables in memory; each does a little arithmetic and then jumps to any other, as
data or a counter says, until the fuel is used up. So control flow is of every kind: loops in loops, with several exits,
with several entries. What no C compiler would write is here: shuffles, lanes chosen at run time, masks, a `select`
between pointers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.support.programs import Draw

EXTENT = 8
SIGNATURE = "n: i32, a: f64, x: f64[n], inout y: f64[n] -> f64"
VARIABLES = ("t0", "t1", "t2")
PAIR = "<2 x double>"

HEADER = """declare double @llvm.sin.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.maxnum.f64(double, double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.vector.reduce.fadd.v2f64(double, <2 x double>)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @mix(ptr %p, ptr %q, double %t) {
  %u = load double, ptr %q
  %h = call double @llvm.fma.f64(double %u, double 5.000000e-01, double %t)
  store double %h, ptr %p
  %v = load double, ptr %q
  %w = load double, ptr %p
  %s = call double @llvm.sin.f64(double %v)
  %d = fsub double %s, %w
  store double %d, ptr %q
  ret void
}

define double @program(i32 %n, double %a, ptr %x, ptr %y) {
  %t0 = alloca double
  %t1 = alloca double
  %t2 = alloca double
  %k = alloca i32
  %fuel = alloca i32
  %p = alloca ptr
  %l = alloca [8 x double]
  store double %a, ptr %t0
  store double 2.500000e-01, ptr %t1
  %x0 = load double, ptr %x
  store double %x0, ptr %t2
  store i32 0, ptr %k
  store i32 FUEL, ptr %fuel
  store ptr %y, ptr %p
  call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %x, i64 64, i1 false)
  br label %b0
"""
FOOTER = """end:
  %r0 = load double, ptr %t0
  %r1 = load double, ptr %t1
  %r2 = load double, ptr %t2
  %m = fmul double %r1, %r2
  %r = fadd double %r0, %m
  %pl = getelementptr double, ptr %l, i64 3
  %vl = load double, ptr %pl
  %result = fadd double %r, %vl
  ret double %result
}
"""


@dataclass(frozen=True)
class IrProgram:
    """LLVM IR of one function, `program`."""

    source: str


@st.composite
def ir_programs(draw: Draw) -> IrProgram:
    """One program."""
    return IrProgram(_Writer(draw).program())


@dataclass
class _Writer:
    draw: Draw
    lines: list[str] = field(default_factory=list)
    names: int = 0

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))  # type: ignore[return-value]

    def pick(self, *choices: str) -> str:
        return choices[self.number(0, len(choices) - 1)]

    def program(self) -> str:
        count = self.number(2, 6)
        for block in range(count):
            self.block(block, count)
        return HEADER.replace("FUEL", str(self.number(1, 40))) + "\n".join(self.lines) + "\n" + FOOTER

    def emit(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def new(self, text: str) -> str:
        self.names += 1
        self.emit(f"%v{self.names} = {text}")
        return f"%v{self.names}"

    def block(self, number: int, count: int) -> None:
        self.lines.append(f"b{number}:")
        left = self.new("load i32, ptr %fuel")
        less = self.new(f"sub i32 {left}, 1")
        self.emit(f"store i32 {less}, ptr %fuel")
        out = self.new(f"icmp sle i32 {less}, 0")
        self.emit(f"br i1 {out}, label %end, label %c{number}")
        self.lines.append(f"c{number}:")
        for _ in range(self.number(1, 4)):
            self.statement()
        targets = [f"%b{self.number(0, count - 1)}" for _ in range(3)]
        if self.number(0, 5) == 0:
            targets[0] = "%end"
        match self.number(0, 2):
            case 0:
                condition = self.new(f"fcmp {self.pick('olt', 'ogt', 'une')} double {self.value()}, {self.constant()}")
                self.emit(f"br i1 {condition}, label {targets[0]}, label {targets[1]}")
            case 1:
                k = self.new("load i32, ptr %k")
                self.emit(f"switch i32 {k}, label {targets[0]} [ i32 1, label {targets[1]} i32 5, label {targets[2]} ]")
            case _:
                k = self.new("load i32, ptr %k")
                condition = self.new(f"icmp {self.pick('slt', 'ugt')} i32 {k}, {self.number(1, EXTENT - 2)}")
                self.emit(f"br i1 {condition}, label {targets[0]}, label {targets[1]}")

    # Values

    def constant(self) -> str:
        return self.pick("5.000000e-01", "-2.500000e-01", "1.250000e+00", "0.000000e+00")

    def index(self) -> str:
        """An i64 within the arrays."""
        kind = self.number(0, 2)
        if kind == 0:
            return str(self.number(0, EXTENT - 1))
        k = self.new("load i32, ptr %k")
        if kind == 1:
            k = self.new(f"and i32 {self.new(f'mul i32 {k}, {self.number(1, 5)}')}, 7")
        return self.new(f"zext i32 {k} to i64")

    def array(self) -> str:
        match self.number(0, 4):
            case 0 | 1:
                return "%y"
            case 2:
                return "%l"
            case 3:
                return self.new("load ptr, ptr %p")
            case _:
                condition = self.new(f"fcmp ogt double {self.scalar()}, {self.constant()}")
                return self.new(f"select i1 {condition}, ptr %y, ptr %l")

    def place(self, array: str | None = None) -> str:
        return self.new(f"getelementptr inbounds double, ptr {array or self.array()}, i64 {self.index()}")

    def pair_place(self) -> str:
        even = self.new(f"and i64 {self.index()}, 6")
        return self.new(f"getelementptr inbounds double, ptr {self.array()}, i64 {even}")

    def scalar(self) -> str:
        return self.new(f"load double, ptr %{self.pick(*VARIABLES)}")

    def value(self) -> str:
        match self.number(0, 4):
            case 0:
                return "%a"
            case 1:
                return self.new(f"load double, ptr {self.place('%x')}")
            case 2:
                return self.new(f"load double, ptr {self.place()}")
            case _:
                return self.scalar()

    def expression(self) -> str:
        a, b = self.value(), self.value()
        match self.number(0, 8):
            case 0:
                return self.new(f"fmul double {a}, {b}")
            case 1:
                return self.new(f"call double @llvm.fma.f64(double {a}, double {b}, double {self.constant()})")
            case 2:
                return self.new(f"call double @llvm.maxnum.f64(double {a}, double {b})")
            case 3:
                return self.new(f"call double @llvm.copysign.f64(double {a}, double {b})")
            case 4:
                condition = self.new(f"fcmp oge double {a}, {self.constant()}")
                return self.new(f"select i1 {condition}, double {a}, double {b}")
            case 5:
                square = self.new(f"call double @llvm.fma.f64(double {b}, double {b}, double 1.500000e+00)")
                return self.new(f"fdiv double {a}, {self.new(f'call double @llvm.sqrt.f64(double {square})')}")
            case 6:
                return self.new(f"freeze double {self.new(f'fneg double {a}')}")
            case 7:
                mask, operation = self.pick("9223372036854775807 and", "-9223372036854775808 xor").split()
                bits = self.new(f"bitcast double {a} to i64")
                return self.new(f"bitcast i64 {self.new(f'{operation} i64 {bits}, {mask}')} to double")
            case _:
                return self.new(f"fsub double {a}, {b}")

    def bounded(self) -> str:
        return self.new(f"call double @llvm.sin.f64(double {self.expression()})")

    # Statements

    def statement(self) -> None:
        [
            self.assign, self.assign, self.store, self.store, self.step, self.step, self.pair, self.lane, self.move,
            self.copy_bits, self.turn, self.call, self.clear, self.total, self.half_of_a_pair,
        ][self.number(0, 14)]()  # fmt: skip

    def assign(self) -> None:
        self.emit(f"store double {self.bounded()}, ptr %{self.pick(*VARIABLES)}")

    def store(self) -> None:
        self.emit(f"store double {self.bounded()}, ptr {self.place()}")

    def step(self) -> None:
        k = self.new("load i32, ptr %k")
        moved = self.new(f"add i32 {k}, {self.number(1, 7)}")
        if self.number(0, 3) == 0:
            positive = self.new(f"fcmp ogt double {self.value()}, {self.constant()}")
            moved = self.new(f"add i32 {moved}, {self.new(f'zext i1 {positive} to i32')}")
        self.emit(f"store i32 {self.new(f'and i32 {moved}, 7')}, ptr %k")

    def pair(self) -> None:
        a = self.new(f"load {PAIR}, ptr {self.pair_place()}, align 8")
        b = self.new(f"load {PAIR}, ptr {self.pair_place()}, align 8")
        mask = self.pick("<i32 0, i32 3>", "<i32 1, i32 0>", "<i32 2, i32 1>", "<i32 1, i32 1>")
        c = self.new(f"shufflevector {PAIR} {a}, {PAIR} {b}, <2 x i32> {mask}")
        d = self.new(f"fmul {PAIR} {c}, <double 5.000000e-01, double -2.500000e-01>")
        if self.number(0, 1):
            chosen = self.new(f"fcmp ogt {PAIR} {a}, {b}")
            d = self.new(f"select <2 x i1> {chosen}, {PAIR} {d}, {PAIR} {b}")
        self.emit(f"store {PAIR} {d}, ptr {self.pair_place()}, align 8")

    def lane(self) -> None:
        a = self.new(f"load {PAIR}, ptr {self.pair_place()}, align 8")
        lane = self.new(f"and i64 {self.index()}, 1")
        b = self.new(f"insertelement {PAIR} {a}, double {self.bounded()}, i64 {lane}")
        element = self.new(f"extractelement {PAIR} {b}, i64 {self.new(f'and i64 {self.index()}, 1')}")
        self.emit(f"store double {element}, ptr %{self.pick(*VARIABLES)}")
        self.emit(f"store {PAIR} {b}, ptr {self.pair_place()}, align 8")

    def half_of_a_pair(self) -> None:
        """Of the other half an optimiser knows that nobody looks at it."""
        a = self.new(f"load {PAIR}, ptr {self.pair_place()}, align 8")
        lane = self.number(0, 1)
        lanes = ["double poison", "double poison"]
        lanes[lane] = f"double {self.pick('5.000000e-01', '-2.500000e-01', '1.250000e+00')}"
        b = self.new(f"{self.pick('fmul', 'fadd')} {PAIR} {a}, <{', '.join(lanes)}>")
        picked = ["i32 poison", "i32 poison"]
        picked[1 - lane] = f"i32 {lane}"
        c = self.new(f"shufflevector {PAIR} {b}, {PAIR} poison, <2 x i32> <{', '.join(picked)}>")
        d = self.new(f"fmul {PAIR} {c}, {a}")
        element = self.new(f"extractelement {PAIR} {d}, i64 {1 - lane}")
        self.emit(f"store double {self.new(f'call double @llvm.sin.f64(double {element})')}, ptr {self.place()}")

    def total(self) -> None:
        a = self.new(f"load {PAIR}, ptr {self.pair_place()}, align 8")
        start = self.scalar()
        name = "@llvm.vector.reduce.fadd.v2f64"
        total = self.new(f"call double {name}(double {start}, {PAIR} {a})")
        bent = self.new(f"call double @llvm.sin.f64(double {total})")
        self.emit(f"store double {bent}, ptr %{self.pick(*VARIABLES)}")

    def move(self) -> None:
        to, source = self.array(), self.array()
        size = 8 * self.number(1, EXTENT)
        self.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def copy_bits(self) -> None:
        bits = self.new(f"load i64, ptr {self.place()}")
        self.emit(f"store i64 {bits}, ptr {self.place()}")

    def turn(self) -> None:
        """The pointer variable leads to another array."""
        self.emit(f"store ptr {self.array()}, ptr %p")

    def call(self) -> None:
        self.emit(f"call void @mix(ptr {self.place()}, ptr {self.place()}, double {self.value()})")

    def clear(self) -> None:
        start = self.new(f"getelementptr inbounds i8, ptr {self.array()}, i64 {8 * self.number(0, 5)}")
        self.emit(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {8 * self.number(1, 3)}, i1 false)")
