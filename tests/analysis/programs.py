"""Random integer programs with nested loops, as LLVM IR with one `alloca` per variable."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

WIDTHS = (8, 16, 32, 64)
PREDICATES = ("slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "ne", "eq")


@dataclass
class Writer:
    """Writes the text; `draw` decides."""

    draw: st.DrawFn
    widths: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    count: int = 0

    def name(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def pick(self, options: tuple | list):
        return self.draw(st.sampled_from(options))

    def op(self, text: str) -> str:
        name = "%" + self.name("t")
        self.lines.append(f"  {name} = {text}")
        return name

    def load(self, variable: int) -> str:
        return self.op(f"load i{self.widths[variable]}, ptr %v{variable}")

    def operand(self, bits: int) -> str:
        """A constant, or a variable brought to the width."""
        if self.draw(st.booleans()):
            return str(self.draw(st.integers(-9, 20)))
        variable = self.pick([*range(len(self.widths)), *self.busy * 3])
        value, own = self.load(variable), self.widths[variable]
        if own == bits:
            return value
        if own > bits:
            return self.op(f"trunc i{own} {value} to i{bits}")
        return self.op(f"{self.pick(('sext', 'sext', 'zext'))} i{own} {value} to i{bits}")

    def flags(self) -> str:
        return self.pick(("", "nsw ", "nuw nsw ", "nsw "))

    def expression(self, bits: int) -> str:
        opcode = self.pick(("add", "add", "sub", "mul", "shl", "and", "lshr", "udiv", "urem", "copy"))
        x = self.operand(bits)
        if opcode == "copy":
            return x
        if opcode in ("shl", "lshr"):
            return self.op(f"{opcode} i{bits} {x}, {self.draw(st.integers(0, 3))}")
        if opcode in ("udiv", "urem"):
            return self.op(f"{opcode} i{bits} {x}, {self.draw(st.integers(1, 9))}")
        flags = "" if opcode == "and" else self.flags()
        return self.op(f"{opcode} {flags}i{bits} {x}, {self.operand(bits)}")

    def free(self) -> list[int]:
        """The variables that no loop around counts with; any, now and then."""
        free = [v for v in range(2, len(self.widths)) if v not in self.busy]
        return free if free and self.draw(st.integers(0, 9)) else list(range(2, len(self.widths)))

    def assign(self) -> None:
        variable = self.pick(self.free())
        bits = self.widths[variable]
        if self.draw(st.booleans()):
            step = self.operand(bits)
            value = self.op(f"{self.pick(('add', 'add', 'sub'))} {self.flags()}i{bits} {self.load(variable)}, {step}")
        else:
            value = self.expression(bits)
        self.lines.append(f"  store i{bits} {value}, ptr %v{variable}")

    def condition(self) -> str:
        variable = self.draw(st.integers(0, len(self.widths) - 1))
        bits = self.widths[variable]
        value = self.load(variable)
        return self.op(f"icmp {self.pick(PREDICATES)} i{bits} {value}, {self.operand(bits)}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def branch(self, target: str) -> None:
        self.lines.append(f"  br label %{target}")

    def branch_if(self, condition: str, then: str, other: str) -> None:
        self.lines.append(f"  br i1 {condition}, label %{then}, label %{other}")

    def if_(self, depth: int, leave: str | None) -> None:
        then, end = self.name("then"), self.name("end")
        self.branch_if(self.condition(), then, end)
        self.label(then)
        self.block(depth, leave)
        self.branch(end)
        self.label(end)

    def break_(self, leave: str) -> None:
        stay = self.name("stay")
        self.branch_if(self.condition(), leave, stay)
        self.label(stay)

    def loop(self, depth: int) -> None:
        """`for (v = start; v <predicate> bound; v += step)`, tested at the top or at the bottom."""
        head, body, end = self.name("head"), self.name("body"), self.name("end")
        variable = self.pick(self.free())
        bits = self.widths[variable]
        self.lines.append(f"  store i{bits} {self.operand(bits)}, ptr %v{variable}")
        step, predicate = self.pick(
            [(1, "slt")] * 6
            + [
                (1, "sle"),
                (1, "sle"),
                (1, "ne"),
                (-1, "sge"),
                (-1, "sgt"),
                (-1, "ne"),
                (1, "ult"),
                (3, "slt"),
                (2, "ne"),
            ]
            + [(-2, "sgt"), (2, "ult"), (1, "sgt"), (-1, "uge"), (-1, "ugt"), (1, "eq"), (5, "ule")]
        )
        top = self.draw(st.booleans())
        self.branch(head)
        self.label(head)
        if top:
            value = self.load(variable)
            self.branch_if(self.op(f"icmp {predicate} i{bits} {value}, {self.operand(bits)}"), body, end)
            self.label(body)
        self.busy.append(variable)
        self.block(depth - 1, end)
        self.busy.pop()
        value = self.op(f"add {self.pick(('', 'nsw ', 'nsw '))}i{bits} {self.load(variable)}, {step}")
        self.lines.append(f"  store i{bits} {value}, ptr %v{variable}")
        if top:
            self.branch(head)
        else:
            self.branch_if(self.op(f"icmp {predicate} i{bits} {value}, {self.operand(bits)}"), head, end)
        self.label(end)

    def block(self, depth: int, leave: str | None) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            kind = self.pick(("assign", "assign", "loop", "loop", "if", "break", "sink", "sink"))
            if kind == "loop" and depth > 0:
                self.loop(depth)
            elif kind == "if" and depth > 0:
                self.if_(depth - 1, leave)
            elif kind == "break" and leave is not None and self.draw(st.booleans()):
                self.break_(leave)
            elif kind == "sink":
                self.sink(self.draw(st.integers(0, len(self.widths) - 1)))
            else:
                self.assign()

    def sink(self, variable: int) -> None:
        """Keeps the variable's value needed here."""
        self.lines.append(f"  call void @sink{self.widths[variable]}(i{self.widths[variable]} {self.load(variable)})")

    def program(self) -> str:
        self.widths = [32, 64] + [self.pick(WIDTHS) for _ in range(self.draw(st.integers(3, 5)))]
        for variable, bits in enumerate(self.widths):
            start = f"%a{variable}" if variable < 2 else str(self.draw(st.integers(-2, 5)))
            self.lines.append(f"  %v{variable} = alloca i{bits}")
            self.lines.append(f"  store i{bits} {start}, ptr %v{variable}")
        self.loop(3)
        self.block(2, None)
        for variable in range(len(self.widths)):
            self.sink(variable)
        body = "\n".join(self.lines)
        sinks = "\n".join(f"declare void @sink{bits}(i{bits}) nounwind willreturn" for bits in WIDTHS)
        return f"{sinks}\ndefine void @f(i32 %a0, i64 %a1) {{\n{body}\n  ret void\n}}\n"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a module with one function `@f(i32, i64)`."""
    return Writer(draw).program()
