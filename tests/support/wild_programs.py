"""Random C programs with the memory of real code: structs, lists, pointers that move, recursion, allocation.

They extend `programs`: the same bounded, smooth arithmetic, in places that are harder to follow. An array may be
reached by several names, a loop may run as often as a number says that is known at run time alone (`r`), what a pointer
leads to may depend on data, and a function may call itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.support.levels import LEVELS
from tests.support.programs import SCALARS, SIZES, Draw, Writer

SIGNATURE = (
    "n: i32, m: i32, r: i32, a: f64, x: f64[n], place: i32[m], "
    "scratch w: f64[n], inout y: f64[n], inout z: f64[m] -> f64"
)
ITEMS = 4  # structs in the local array, and rows of the local grid
RECORDS = 4  # structs on the heap

HEADER = """#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
void daxpy_(const int *, const double *, const double *, const int *, double *, const int *);
double ddot_(const int *, const double *, const int *, const double *, const int *);
void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *, const double *,
            const int *, const double *, double *, const int *);
#else /* the reference has no library */
static void daxpy_(const int *n, const double *a, const double *x, const int *i, double *y, const int *j) {{
    for (int k = 0; k < *n; k++) y[k * *j] += *a * x[k * *i];
}}
static double ddot_(const int *n, const double *x, const int *i, const double *y, const int *j) {{
    double s = 0;
    for (int k = 0; k < *n; k++) s += x[k * *i] * y[k * *j];
    return s;
}}
static void dgemv_(const char *t, const int *m, const int *n, const double *a, const double *A, const int *lda,
                   const double *x, const int *i, const double *b, double *y, const int *j) {{
    for (int k = 0; k < *m; k++) y[k * *j] *= *b;
    for (int c = 0; c < *n; c++)
        for (int k = 0; k < *m; k++) y[k * *j] += *a * A[c * *lda + k] * x[c * *i];
}}
#endif

static int turns;
static double total;

struct item {{ int k; double v; double *p; double u; }};
struct node {{ double v; struct node *next; }};
struct record {{ double v; short k; {real} f; union {{ double d; uint64_t b; }} s; double *p; double a[2]; }};

static double blend(double p, double q) {{ return p > q ? p * q + 0.5 : p - 0.25 * q * q; }}
static double bend(double p) {{ return p / (1 + p * p); }}
static double (*const curves[3])(double) = {{ sin, bend, tanh }};

static void exchange(void *p, void *q, size_t size) {{
    char held[64];
    memcpy(held, p, size), memcpy(p, q, size), memcpy(q, held, size);
}}

static struct record record(double p, int k, double *at) {{
    struct record made = {{ .v = p, .k = k, .f = 0.5 * p, .s.d = bend(p), .p = at, .a = {{ 0.3, p * p }} }};
    return made;
}}

static void mix(double *p, double *q, double t) {{
    *p = 0.5 * *q + t;
    *q = sin(*p) - 0.3 * *q;
}}

static double walk(const double *x, double *y, int low, int high, double t) {{
    if (high - low <= 1) return turns++ % 2 ? {leaf} : bend(t);
    int middle = low + (high - low) / 2;
    {before};
    double left = walk(x, y, low, middle, {down});
    {between};
    double right = walk(x, y, middle, high, 0.5 * t + 0.2 * left);
    return {join};
}}

double program(int n, int m, int r, double a, const double *x, const int *place, double *w, double *y, double *z) {{
    double t0 = a, t1 = 0.3, t2 = x[1];
    unsigned q = 1;
    turns = 0, total = a;
    struct item it[{items}];
    struct node *head = 0;
    struct record *rs = malloc({records} * sizeof *rs);
    double grid[{items}][{m}];
    float h[{m}];
    double complex c = 0.2 + 0.1 * a * I;
    {local};
    for (int i = 0; i < n; i++) w[i] = l[i] = 0.4 * x[i];
    for (int i = 0; i < m; i++) h[i] = {single}0.25 * i;
    for (int i = 0; i < {items}; i++) {{
        it[i].k = i, it[i].v = x[i], it[i].p = &y[i], it[i].u = 0.1 * i;
        for (int j = 0; j < m; j++) grid[i][j] = 0.1 * x[j] * (i + 1);
    }}
    for (int i = 0; i < {records}; i++) rs[i] = record(x[i] * (i + 1), i, &w[i]);
    double *front = {first}, *back = {second};
"""
LOCAL = ("double l[{n}]", "double *l = malloc(n * sizeof *l)", "double *l = calloc(n + 3, sizeof *l)")
FOOTER = """    goto done;
done:
    while (head) {
        struct node *k = head->next;
        t1 += 0.1 * head->v;
        free(head);
        head = k;
    }
    for (int i = 0; i < 4; i++) t2 += 0.1 * rs[i].s.d + 0.2 * rs[i].v * rs[i].k + rs[i].f * rs[i].a[1] + *rs[i].p;
    free(rs);
    t0 += sin(t1 * t2) + l[2] * w[3] + front[1] * back[2];
    return t0 + it[1].v * *it[2].p + grid[1][2] + h[1] + creal(c) * cimag(c);
}
"""


@dataclass(frozen=True)
class WildProgram:
    """C source, the extents of its arrays, the level at which a compiler has optimised it ("": none has), and whether
    parts are in single precision."""

    source: str
    n: int
    m: int
    level: str
    single: bool


@st.composite
def wild_programs(draw: Draw) -> WildProgram:
    """One program."""
    n, m = draw(st.sampled_from(SIZES))  # type: ignore[misc]
    level = draw(st.sampled_from(("", *LEVELS)))
    single = draw(st.integers(0, 4)) == 4
    return WildProgram(_Writer(draw, n, m, single=single).program(), n, m, level, single)  # type: ignore[arg-type]


@dataclass
class _Writer(Writer):
    single: bool = False
    blocks: dict[str, int] = field(default_factory=dict)  # arrays of the statement around, with their extents

    def program(self) -> str:
        recursion = self.recursion()
        for _ in range(self.number(3, 7)):
            self.statement(3)
        head = HEADER.format(
            local=self.pick(*LOCAL).format(n=self.n),
            m=self.m,
            items=ITEMS,
            records=RECORDS,
            real="float" if self.single else "double",
            single="0.1 * x[i] + " if self.single else "",
            first=self.pick("w", "y", "l"),
            second=self.pick("l", "w", "y"),
            **recursion,
        )
        return head + "".join(self.lines) + FOOTER

    def recursion(self) -> dict[str, str]:
        """The parts of `walk`."""
        place = ("y[low]", "y[middle]", "y[high - 1]")
        return {
            "leaf": self.pick("sin(x[low] * t)", "t * y[low]", "y[low] * y[low] / (1 + t * t)", "bend(t) + x[low]"),
            "before": f"{self.pick(*place)} {self.pick('=', '+=')} bend(t * {self.pick(*place)})",
            "down": self.pick("t", "0.5 * t + y[middle]", "bend(x[middle] * t)"),
            "between": f"if (left > {self.constant()}) {self.pick(*place)} = bend(left * {self.pick(*place)})",
            "join": self.pick("bend(left * right)", "bend(left + right * y[low])", "sin(left - right * t)"),
        }

    def statement(self, depth: int) -> None:
        wild: list[Callable[[], None]] = [
            self.call, self.recurse, self.curve, self.swap_pointers, self.move_pointer, self.move_member, self.clear,
            self.push, self.walk_list, self.copy_item, self.copy_bits, self.copy_some, self.turn, self.jump, self.small,
            self.number_to_index, self.move_records, self.sort_records, self.copy_word,
        ]  # fmt: skip
        nested: list[Callable[[int], None]] = [self.allocate, self.run_time_count, self.endless, self.narrow_count]
        kind = self.number(0, 2)
        if kind == 0:
            super().statement(depth)
        elif kind == 1 and depth > 0:
            nested[self.number(0, len(nested) - 1)](depth)
        else:
            wild[self.number(0, len(wild) - 1)]()

    def element(self, arrays: dict[str, int]) -> str:
        """As a rule an element of an array; else of something that leads there by another way."""
        if self.blocks and self.number(0, 2) == 0:
            name = self.pick(*self.blocks)
            return f"{name}[{self.index(self.blocks[name])}]"
        kind = self.number(0, 11)
        match kind:
            case 0:
                return f"it[{self.index(ITEMS)}].{self.pick('v', 'u')}"
            case 1:
                return f"*it[{self.index(ITEMS)}].p"
            case 2:
                return f"grid[{self.index(ITEMS)}][{self.index(self.m)}]"
            case 3 | 4:
                return f"{self.pick('front', 'back')}[{self.index(self.n)}]"
            case 6:
                return f"rs[{self.index(RECORDS)}].{self.pick('v', 's.d', 'a[0]', 'a[1]')}"
            case 7:
                return f"*rs[{self.index(RECORDS)}].p"
            case 5 if self.single:
                return f"h[{self.index(self.m)}]"
            case _:
                return super().element(arrays)

    # Statements

    def double_place(self) -> str:
        """Something in memory whose address is that of a double."""
        place = self.element(self.writable)
        return f"w[{self.index(self.n)}]" if place.startswith("h[") else place

    def call(self) -> None:
        self.emit(f"mix(&{self.double_place()}, &{self.double_place()}, {self.bounded()});")

    def recurse(self) -> None:
        low = self.number(0, 2)
        high = self.pick(str(self.n), str(self.number(low, self.n)), f"{low} + (int)(q % {self.n - low})")
        self.emit(
            f"{self.pick(*SCALARS)} = bend(walk(x, {self.pick('w', 'y', 'l', 'front')}, {low}, {high}, {self.leaf()}));"
        )

    def curve(self) -> None:
        chosen = self.pick("q % 3", "place[0] % 3", f"({self.condition()}) + 1")
        self.emit(f"{self.target()} = curves[{chosen}]({self.expression(1)});")

    def swap_pointers(self) -> None:
        with self.block(self.pick("", f"if ({self.condition()})")):
            self.emit("double *k = front;")
            self.emit("front = back;")
            self.emit("back = k;")

    def move_pointer(self) -> None:
        one, other = self.pick("w", "y", "l", "back"), self.pick("w", "y", "l", "front")
        self.emit(f"{self.pick('front', 'back')} = {self.condition()} ? {one} : {other};")

    def move_member(self) -> None:
        target = self.pick("w", "y", "l", "front")
        self.emit(f"it[{self.index(ITEMS)}].p = &{target}[{self.index(self.n)}];")

    def clear(self) -> None:
        self.emit(f"memset({self.pick('w', 'y', 'l', 'front')}, 0, {self.size()} * sizeof(double));")

    def size(self) -> str:
        return self.pick(str(self.number(0, self.n)), f"(q % {self.n})")

    def push(self) -> None:
        with self.block(self.pick("", f"if ({self.condition()})")):
            self.emit("struct node *k = malloc(sizeof *k);")
            self.emit(f"k->v = {self.bounded()};")
            self.emit("k->next = head;")
            self.emit("head = k;")

    def walk_list(self) -> None:
        with self.block("for (struct node *k = head; k; k = k->next)"):
            self.emit(f"{self.pick(*SCALARS)} += 0.3 * sin(k->v);")
            if self.number(0, 1):
                self.emit(f"k->v = {self.bounded()} * k->v;")

    def copy_item(self) -> None:
        to, source = f"it[{self.index(ITEMS)}]", f"it[{self.index(ITEMS)}]"
        whole = self.number(0, 7) == 0
        self.emit(f"{to} = {source};" if whole else f"{to}.v = {source}.u, {to}.p = {source}.p;")

    def copy_bits(self) -> None:
        with self.block(""):
            self.emit("uint64_t bits;")
            self.emit(f"memcpy(&bits, &{self.double_place()}, sizeof bits);")
            self.emit(f"memcpy(&{self.double_place()}, &bits, sizeof bits);")

    def copy_some(self) -> None:
        """Between arrays that may be the same."""
        to, source = self.pick("w", "l", "y", "front", "back"), self.pick("w", "l", "y", "x", "front", "back")
        self.emit(f"memmove({to}, {source}, {self.size()} * sizeof(double));")

    def turn(self) -> None:
        self.emit(f"c = c * (0.6 + {self.bounded()} * I) / (1 + cabs(c));")
        self.emit(f"{self.pick(*SCALARS)} += 0.2 * {self.pick('creal(c)', 'cimag(c)', 'cabs(c + 2)')};")

    def jump(self) -> None:
        self.emit(f"if ({self.condition()}) goto done;")

    def small(self) -> None:
        """A small local array whose elements are chosen by data."""
        with self.block(""):
            self.emit(f"double b[3] = {{ {self.bounded()}, {self.leaf()}, {self.leaf()} }};")
            self.emit(f"b[q % 3] += {self.leaf()};")
            self.emit(f"{self.target()} = b[{self.index(3)}] * bend(b[(q + 1) % 3]);")

    def move_records(self) -> None:
        """Whole records: by assignment, by copies of bytes, one or several."""
        one, other = (f"rs[{self.index(RECORDS)}]" for _ in range(2))
        match self.number(0, 4):
            case 0:
                self.emit(f"{one} = {other};")
            case 1:
                self.emit(f"exchange(&{one}, &{other}, sizeof *rs);")
            case 2:
                count = self.pick("1", "2", "(q % 3)")
                self.emit(f"memmove(rs + {self.number(0, 2)}, rs + {self.number(0, 2)}, {count} * sizeof *rs);")
            case 3:
                self.emit(
                    f"{one} = record({self.bounded()}, q % 5, &{self.pick('w', 'y', 'l')}[{self.index(self.n)}]);"
                )
            case _:
                with self.block(""):
                    self.emit(f"struct record held = {one};")
                    self.emit(f"held.{self.pick('v', 'a[1]', 's.d')} *= {self.bounded()};")
                    self.emit(f"{other} = held;")

    def sort_records(self) -> None:
        with self.block(f"for (int i = 1; i < {RECORDS}; i++)"):
            self.emit("struct record held = rs[i];")
            self.emit("int j = i;")
            self.emit(f"for (; j > 0 && rs[j - 1].{self.pick('v', 'f')} > held.v; j--) rs[j] = rs[j - 1];")
            self.emit("rs[j] = held;")

    def copy_word(self) -> None:
        """A number through the integer that shares its place."""
        self.emit(f"rs[{self.index(RECORDS)}].s.b = rs[{self.index(RECORDS)}].s.b;")

    def add_to_total(self) -> None:
        """A file-scope variable."""
        self.emit(f"total = 0.5 * total + {self.bounded()};")
        self.emit(f"{self.target()} = bend(total);")

    def library(self) -> None:
        """BLAS, over arrays that are not the same."""
        one, other = self.pick("w", "x"), self.pick("l", "y")
        with self.block(""):
            self.emit(f"int size = {self.size()}, step = 1, two = 2;")
            self.emit(f"double p = {self.bounded()}, h = {self.constant(-5, 5)};")
            self.emit(
                self.pick(
                    f"daxpy_(&size, &p, {one}, &step, {other}, &step);",
                    f"{self.pick(*SCALARS)} = bend(p * ddot_(&size, {one}, &step, {other}, &step));",
                    f'dgemv_("N", &two, &two, &p, {one}, &two, z, &step, &h, {other}, &two);',
                )
            )

    def number_to_index(self) -> None:
        self.emit(f"q = (unsigned)(3 * fabs({self.leaf()}));")

    def allocate(self, depth: int) -> None:
        """Memory for the time of a statement; a part of it is left as calloc made it."""
        self.names += 1
        name, extent = f"b{self.names}", self.number(2, self.m)
        with self.block(""):
            self.emit(f"double *{name} = calloc({extent}, sizeof *{name});")
            with self.block(f"for (int i = 0; i < {extent - 1}; i++)"):
                self.emit(f"{name}[i] = 0.5 * {self.pick('x[i]', 't0', 'z[i]', 'back[i]')};")
            self.blocks[name] = extent
            kept, self.breakable = self.breakable, 0
            self.body(depth)
            self.breakable = kept
            del self.blocks[name]
            self.emit(f"t2 += 0.2 * {name}[{extent - 1}] * {name}[0];")
            self.emit(f"free({name});")

    def run_time_count(self, depth: int) -> None:
        self.names += 1
        v = f"r{self.names}"
        heads = [f"for (int {v} = 0; {v} < r; {v}++)", f"for (int {v} = r - 1; {v} >= 0; {v}--)"]
        if self.loops:
            heads.append(f"for (int {v} = {self.loops[-1][0]} % {self.m}; {v} < r; {v}++)")
        with self.block(self.pick(*heads)):
            self.inside(v, self.m, depth)

    def endless(self, depth: int) -> None:
        self.names += 1
        v = f"e{self.names}"
        self.emit(f"int {v} = 0;")
        with self.block("for (;;)"):
            self.emit(f"if ({v}++ >= {self.m - 1}) break;")
            self.loops.append((v, self.m))
            self.breakable += 1
            self.statement(depth - 1)
            self.emit(f"if ({v} >= {self.pick('r', 'place[1]', 'm - 2')}) break;")
            self.body(depth)
            self.breakable -= 1
            self.loops.pop()

    def narrow_count(self, depth: int) -> None:
        """A counter that wraps around on its way."""
        self.names += 1
        v = f"u{self.names}"
        start = self.number(250, 255)
        with self.block(f"for (uint8_t {v} = {start}; {v} != {self.number(0, 3)}; {v}++)"):
            self.inside(v, 256, depth)
