"""Rewrites library calls that have no derivative as they stand into calls and instructions that have one.

Calls that return results through pointers, calls with complex arguments or results, intrinsics with several results,
reductions of vectors and what moves their lanes become scalar calls with a rule each (`rules.table`), arithmetic,
shuffles, and stores; the next integer becomes a rounded number that is made an integer, which LLVM knows of constants;
texts that are copied, copies of as many bytes, those that a function allocates, written to new memory; what searches
memory, and what says where a number in a text ends, gives a distance in that:

    before    %r = call double @modf(double %x, ptr %p)
              %z = call { double, double } @cexp(double %a, double %b)
              %s = call double @llvm.vector.reduce.fadd.v2f64(double %t, <2 x double> %v)
              %c = call ptr @strcpy(ptr %to, ptr %from)
              %t = call i32 @asprintf(ptr %at, ptr %format, double %x)
              %q = call ptr @memchr(ptr %memory, i32 %byte, i64 %size)
              %d = call double @strtod(ptr %text, ptr %end)
              %m = call i64 @lround(double %x)

    after     %r = call double @je.modf_fraction.f64(double %x)
              %i = call double @llvm.trunc.f64(double %x)
              store double %i, ptr %p
              %re = call double @je.cexp_re.f64(double %a, double %b)
              %im = call double @je.cexp_im.f64(double %a, double %b)
              %z.1 = insertvalue { double, double } poison, double %re, 0
              %z = insertvalue { double, double } %z.1, double %im, 1
              %v.0 = extractelement <2 x double> %v, i64 0
              %v.1 = extractelement <2 x double> %v, i64 1
              %s.1 = fadd double %t, %v.0
              %s = fadd double %s.1, %v.1
              %l = call i64 @strlen(ptr %from)
              %n = add i64 %l, 1
              call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
              %chars = call i32 @snprintf(ptr null, i64 0, ptr %format, double %x)
              %wide = sext i32 %chars to i64
              %bytes = add i64 %wide, 1
              %new = call ptr @malloc(i64 %bytes)
              store ptr %new, ptr %at
              %t = call i32 @snprintf(ptr %new, i64 %bytes, ptr %format, double %x)
              %found = call ptr @memchr(ptr %memory, i32 %byte, i64 %size)
              %none = icmp eq ptr %found, null
              %to.found = ptrtoint ptr %found to i64
              %to.memory = ptrtoint ptr %memory to i64
              %distance = sub i64 %to.found, %to.memory
              %place = getelementptr i8, ptr %memory, i64 %distance
              %q = select i1 %none, ptr null, ptr %place
              %d = call double @strtod(ptr %text, ptr null)
              %w = call i64 @je.number_length(ptr %text)
              %behind = getelementptr i8, ptr %text, i64 %w
              store ptr %behind, ptr %end
              %near = call double @llvm.round.f64(double %x)
              %i.near = fptosi double %near to i64
              %m = freeze i64 %i.near

The `je.*` functions are declarations that `rules.helpers.link` completes; their values are those of the original calls.
A call that the module defines itself, or whose type is not the library's, stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Function, GlobalVariable, Module, declare, declared_callee
from jax_enzyme.ir.values import ConstantNull, Value, int_value
from jax_enzyme.rules.complex import ANALYTIC, QUOTIENT, REAL_PARTS
from jax_enzyme.rules.declare import PURE, Declarations
from jax_enzyme.rules.effects import NUMBER_LENGTH
from jax_enzyme.rules.emit import emit
from jax_enzyme.rules.expr import parse
from jax_enzyme.rules.names import canonical
from jax_enzyme.transform.rewriting import Change, lower
from jax_enzyme.transform.vector_shuffles import SHUFFLES, Shuffle


def lower_calls(module: Module) -> Module:
    """A copy of the module with all such calls rewritten; the module itself where there are none."""
    return lower(module, _change)


def _change(instruction: I.Instruction, declarations: Declarations) -> Change | None:
    lowering = _lowering(instruction)
    return None if lowering is None else lambda builder: lowering(_Site(instruction, builder, declarations))


class _Site:
    """A call to rewrite, and the means to do it."""

    def __init__(self, call: I.Instruction, builder: Builder, declarations: Declarations) -> None:
        assert isinstance(call, I.Call)
        self.call = call
        self.arguments = call.arguments
        self.builder = builder
        self.declarations = declarations

    def math(self, name: str, *arguments: Value) -> Value:
        """A call of a function of the rules, in the type of its first argument."""
        return self.declarations.call(self.builder, name, arguments, arguments[0].type)

    def formula(self, text: str, *arguments: Value) -> Value:
        """What a formula in `x0`, `x1` ... says of numbers of one type."""
        names = {f"x{i}": value for i, value in enumerate(arguments)}
        return emit(parse(text), self.builder, names, self.declarations, arguments[0].type)

    def pack(self, parts: list[Value]) -> Value:
        """The result of the call from its parts."""
        type_ = self.call.type
        alone = len(parts) == 1 and not isinstance(type_, T.VectorType)
        return parts[0] if alone else self.builder.pack(type_, parts)

    def lanes(self, vector: Value) -> list[Value]:
        assert isinstance(vector.type, T.VectorType)
        return [self.builder.extract_element(vector, lane) for lane in range(vector.type.count)]

    def parts(self) -> list[Value]:
        """The real numbers that the arguments consist of."""
        flat: list[Value] = []
        for argument in self.arguments:
            match argument.type:
                case T.VectorType():
                    flat += self.lanes(argument)
                case T.ArrayType(count, element):
                    flat += [self.builder.extract_value(argument, i, element) for i in range(count)]
                case T.StructType(elements):
                    flat += [self.builder.extract_value(argument, i, t) for i, t in enumerate(elements)]
                case _:
                    flat.append(argument)
        return flat


_Lowering = Callable[[_Site], Value | None]
_EXTENDED = (T.FloatType("x86_fp80"), T.FloatType("fp128"))
"""What `long double` is: on x86, and on aarch64."""
_WITHOUT_HELPERS = frozenset({"sincos", "modf", "frexp", "cdivide", *REAL_PARTS})
"""What is lowered in a type that is wider than the helpers' double, too."""
_READS = ("nounwind", "willreturn", "memory(read)")
_LOWERED = ("je.lowered", MDNode())
"""Says of a call that all is done."""
_FAR = 1 << 20
"""No exponent is so large: what `ilogb` answers for zeros, infinities and NaN is."""
_LONGEST_PATH = 4096
"""Linux takes no longer one (`PATH_MAX`)."""
_TAKES_MEMORY = {"realpath": 1, "getcwd": 0}
"""Where functions are given memory, of their own choice where that is null."""
_SIZE = "(x0 if copysign(1, x0) > 0 else -x0)"
_FRACTION = f"copysign(0 if {_SIZE} > 1e308 else {_SIZE} - trunc({_SIZE}), x0)"


def _sincos(site: _Site, x: Value) -> Iterator[Value]:
    yield site.math("sin", x)
    yield site.math("cos", x)


def _modf(site: _Site, x: Value) -> Iterator[Value]:
    """Fraction and whole part. Helpers are for doubles; in a wider type the difference is what they compute."""
    yield site.formula(_FRACTION, x) if x.type in _EXTENDED else site.math("modf_fraction", x)
    yield site.math("trunc", x)


def _frexp(site: _Site, x: Value) -> Iterator[Value]:
    """Fraction and exponent. In a wider type than the helpers': the exponent by its function of the C library, and 0
    for what has none."""
    if x.type not in _EXTENDED:
        yield site.math("frexp_fraction", x)
        yield site.math("frexp_exponent", x)
        return
    exponent = site.declarations.invoke(site.builder, "ilogbl", T.I32, [x], PURE, PURE)
    more = site.builder.binary("add", exponent, const_int(T.I32, 1))
    less = site.builder.binary("sub", const_int(T.I32, -1), exponent)
    near = site.builder.binary("add", exponent, const_int(T.I32, _FAR))
    none = site.builder.icmp("ugt", near, const_int(T.I32, 2 * _FAR))
    yield site.builder.select(none, x, site.math("ldexp", x, less))
    yield site.builder.select(none, const_int(T.I32, 0), more)


def _remquo(site: _Site, x: Value, y: Value) -> Iterator[Value]:
    yield site.math("remainder", x, y)
    yield site.math("remquo_quotient", x, y)


def _lgamma_r(site: _Site, x: Value) -> Iterator[Value]:
    yield site.math("lgamma", x)
    yield site.math("lgamma_sign", x)


def _stored(results: Callable[..., Iterator[Value]]) -> _Lowering:
    """Of several results the last ones go where the call's last arguments lead; the first is its own, if it has one."""

    def lower(site: _Site) -> Value | None:
        numbers = [a for a in site.arguments if not T.is_pointer(a.type)]
        found = results(site, *numbers)
        own = next(found) if site.call.type != T.VOID else None
        for value, place in zip(found, site.arguments[len(numbers) :], strict=True):
            site.builder.store(value, place)
        return own

    return lower


def _packed(results: Callable[..., Iterator[Value]]) -> _Lowering:
    return lambda site: site.pack(list(results(site, *site.arguments)))


def _posix_memalign(site: _Site) -> Value:
    place, alignment, size = site.arguments
    memory = site.declarations.invoke(site.builder, "aligned_alloc", T.PTR, [alignment, size])
    site.builder.store(memory, place)
    return const_int(site.call.type, 0)


def _asprintf(site: _Site) -> Value:
    place, *words = site.arguments
    type_ = T.FunctionType(T.I32, (T.PTR, T.I64, T.PTR), variadic=True)
    write = declare(site.declarations.module, "snprintf", type_)  # which the program may have without a prototype
    length = site.builder.call(write, [ConstantNull(T.PTR), const_int(T.I64, 0), *words], type_)
    size = site.builder.binary("add", site.builder.cast("sext", length, T.I64), const_int(T.I64, 1))
    memory = site.declarations.memory(site.builder, "malloc", size)
    site.builder.store(memory, place)
    return site.builder.call(write, [memory, size, *words], type_)


def _duplicate(site: _Site) -> Value:
    """A text of its own, of so many characters at most."""
    size = _length(site, *site.arguments)
    memory = site.declarations.memory(site.builder, "malloc", site.builder.binary("add", size, const_int(T.I64, 1)))
    site.declarations.memory(site.builder, "memcpy", memory, site.arguments[0], size)
    site.builder.store(const_int(T.I8, 0), site.builder.gep(T.I8, memory, [size]))
    return memory


def _path(site: _Site) -> Value:
    """What `realpath` writes where it is told goes to new memory, where it is not told."""
    return _written(site, const_int(T.I64, _LONGEST_PATH), "realpath", site.arguments, 1)


def _folder(site: _Site) -> Value:
    """As `realpath`; as large as is said, if it is."""
    room = site.arguments[1]
    unsaid = site.builder.icmp("eq", room, const_int(T.I64, 0))
    size = site.builder.select(unsaid, const_int(T.I64, _LONGEST_PATH), room)
    return _written(site, size, "getcwd", [site.arguments[0], size], 0)


def _written(site: _Site, size: Value, name: str, arguments: Sequence[Value], place: int) -> Value:
    """A text that a function writes to new memory, by its argument there; null where it fails."""
    builder, null = site.builder, ConstantNull(T.PTR)
    memory = site.declarations.memory(builder, "malloc", size)
    arguments = [*arguments[:place], memory, *arguments[place + 1 :]]
    type_ = T.FunctionType(T.PTR, tuple(a.type for a in arguments))
    text = builder.call(declare(site.declarations.module, name, type_), arguments, type_)
    fails = builder.icmp("eq", text, null)
    site.declarations.memory(builder, "free", builder.select(fails, memory, null))
    return builder.select(fails, null, memory)


def _strcpy(site: _Site) -> Value:
    to, source = site.arguments
    return _text(site, to, to, source)


def _strcat(site: _Site) -> Value:
    to, source = site.arguments
    return _text(site, to, site.builder.gep(T.I8, to, [_length(site, to)]), source)


def _text(site: _Site, to: Value, at: Value, source: Value) -> Value:
    """A text with the zero at its end goes to a place; `to`."""
    size = site.builder.binary("add", _length(site, source), const_int(T.I64, 1))
    site.declarations.memory(site.builder, "memcpy", at, source, size)
    return to


def _strncpy(site: _Site) -> Value:
    """At most so many bytes of a text, and zeros in the others."""
    to, source, room = site.arguments
    size = _length(site, source, room)
    site.declarations.memory(site.builder, "memcpy", to, source, size)
    rest = site.builder.gep(T.I8, to, [size])
    site.declarations.memory(site.builder, "memset", rest, const_int(T.I8, 0), site.builder.binary("sub", room, size))
    return to


def _length(site: _Site, text: Value, *limit: Value) -> Value:
    return site.declarations.invoke(site.builder, "strnlen" if limit else "strlen", T.I64, [text, *limit])


def _search(site: _Site) -> Value:
    """What is found lies where the first argument leads, or is null."""
    memory, builder = site.arguments[0], site.builder
    callee = site.call.callee
    assert isinstance(callee, Function)
    found = builder.call(callee, site.arguments)
    found.metadata.append(_LOWERED)
    end, start = (builder.cast("ptrtoint", pointer, T.I64) for pointer in (found, memory))
    place = builder.gep(T.I8, memory, [builder.binary("sub", end, start)])
    null = ConstantNull(T.PTR)
    return builder.select(builder.icmp("eq", found, null), null, place)


def _number(site: _Site) -> Value | None:
    """The number that a text begins with; the address behind it goes where the second argument leads."""
    text, end = site.arguments
    builder, callee = site.builder, site.call.callee
    assert isinstance(callee, Function)
    number = builder.call(callee, [text, ConstantNull(T.PTR)])
    length = site.declarations.invoke(builder, NUMBER_LENGTH, T.I64, [text], _READS)
    builder.store(builder.gep(T.I8, text, [length]), end)
    return number


def _analytic(name: str) -> _Lowering:
    def lower(site: _Site) -> Value:
        flat = site.parts()
        if flat[0].type in _EXTENDED:
            return site.pack([site.formula(t, *flat) for t in QUOTIENT])
        return site.pack([site.math(f"{name}_re", *flat), site.math(f"{name}_im", *flat)])

    return lower


def _formulas(texts: tuple[str, ...]) -> _Lowering:
    def lower(site: _Site) -> Value:
        flat = site.parts()
        return site.pack([site.formula(t, *flat) for t in texts])

    return lower


def _modulo(site: _Site) -> Value:
    """Fortran's MODULO, whose result has the sign of the divisor."""
    x, y = site.arguments[:2]
    return site.formula("x0 + x1 if x0 < 0 and x1 > 0 or x0 > 0 and x1 < 0 else x0", site.math("fmod", x, y), y)


def _next_integer(site: _Site) -> Value:
    """As arithmetic that LLVM does of constants, and for vectors. Of what no integer is near to, the result is any."""
    rounded = site.math("round", site.arguments[0])
    integer = site.builder.cast("fptosi", rounded, site.call.type)
    return site.builder.insert(I.Freeze(site.call.type, opcode="freeze", operands=[integer]))


def _reduction(opcode: str) -> _Lowering:
    def lower(site: _Site) -> Value:
        result, vector = site.arguments
        flags = tuple(flag for flag in site.call.flags if flag not in ("tail", "notail", "musttail"))
        for lane in site.lanes(vector):
            result = site.builder.binary(opcode, result, lane, flags)
        return result

    return lower


def _chain(function: str) -> _Lowering:
    def lower(site: _Site) -> Value:
        result, *rest = site.lanes(site.arguments[0])
        for lane in rest:
            result = site.math(function, result, lane)
        return result

    return lower


def _moved_lanes(shuffle: Shuffle) -> _Lowering:
    return lambda site: shuffle(site.builder, site.arguments, site.call.type)


_LIBRARY: Mapping[str, _Lowering] = {
    "sincos": _stored(_sincos),
    "modf": _stored(_modf),
    "frexp": _stored(_frexp),
    "remquo": _stored(_remquo),
    "lgamma_r": _stored(_lgamma_r),
    "posix_memalign": _posix_memalign,
    "asprintf": _asprintf,
    **dict.fromkeys(("strdup", "__strdup", "strndup", "__strndup"), _duplicate),
    **dict.fromkeys(("realpath", "canonicalize_file_name"), _path),
    "getcwd": _folder,
    "strcpy": _strcpy,
    "strcat": _strcat,
    "strncpy": _strncpy,
    **dict.fromkeys(("memchr", "strchr", "strrchr", "strstr"), _search),
    **dict.fromkeys(("strtod", "strtof"), _number),
    "fortran_mod": lambda site: site.math("fmod", *site.arguments[:2]),
    "fortran_modulo": _modulo,
    "cpowi": _analytic("cpowi"),
    **dict.fromkeys(("lround", "llround"), _next_integer),
    **{name: _formulas(texts) for name, texts in REAL_PARTS.items()},
    **{function.name: _analytic(function.name) for function in ANALYTIC},
}
_INTRINSICS: Mapping[str, _Lowering] = {
    "sincos": _packed(_sincos),
    "modf": _packed(_modf),
    "frexp": _packed(_frexp),
    **dict.fromkeys(("lround", "llround"), _next_integer),
    "vector.reduce.fadd": _reduction("fadd"),
    "vector.reduce.fmul": _reduction("fmul"),
    "vector.reduce.fmax": _chain("fmax"),
    "vector.reduce.fmin": _chain("fmin"),
    "vector.reduce.fmaximum": _chain("maximum"),
    "vector.reduce.fminimum": _chain("minimum"),
    **{name: _moved_lanes(shuffle) for name, shuffle in SHUFFLES.items()},
}
_SHAPES: Mapping[str, str] = {
    "sincos": "v:fpp", "modf": "f:fp", "frexp": "f:fp", "remquo": "f:ffp", "lgamma_r": "f:fp",
    "posix_memalign": "i:pii", "asprintf": "i:pp", "strcpy": "p:pp", "strcat": "p:pp", "strncpy": "p:ppi",
    "strdup": "p:p", "__strdup": "p:p", "strndup": "p:pi", "__strndup": "p:pi",
    "realpath": "p:pp", "canonicalize_file_name": "p:p", "getcwd": "p:pi",
    "memchr": "p:pii", "strchr": "p:pi", "strrchr": "p:pi", "strstr": "p:pp",
    "strtod": "f:pp", "strtof": "f:pp",
    "lround": "i:f", "llround": "i:f",
    "fortran_mod": "f:ffpi", "fortran_modulo": "f:ffpi", "cpowi": "c:ci",
    "cabs": "f:c", "carg": "f:c", "creal": "f:c", "cimag": "f:c", "conj": "c:c", "cproj": "c:c",
    "cmultiply": "c:cc", "cdivide": "c:cc", "cpow": "c:cc",
}  # fmt: skip
"""Result and parameters of library functions: `f` floating, `i` integer, `p` pointer, `v` none, `c` complex."""


def _lowering(instruction: I.Instruction) -> _Lowering | None:
    """How an instruction is rewritten, None if it stays."""
    if not isinstance(instruction, I.Call) or _LOWERED in instruction.metadata:
        return None
    callee = declared_callee(instruction)
    if callee is None:
        return None
    if callee.name.startswith("llvm."):
        name = canonical(callee.name, _INTRINSICS)
        return _INTRINSICS[name] if name is not None and not _scalable(instruction) else None
    name = canonical(callee.name, _LIBRARY)
    if name in ("strtod", "strtof") and not _is_there(instruction.arguments[1]):
        return None
    if name in _TAKES_MEMORY and not isinstance(instruction.arguments[_TAKES_MEMORY[name]], ConstantNull):
        return None
    if name is None or not _fits(instruction.function_type, _SHAPES.get(name, "c:c"), name in _WITHOUT_HELPERS):
        return None
    return _LIBRARY[name]


def _is_there(pointer: Value) -> bool:
    """Whether a pointer certainly leads to memory, as null does not."""
    if isinstance(pointer, I.GetElementPtr) and "inbounds" in pointer.flags:
        offsets = [int_value(index) for index in pointer.operands[1:]]
        return _is_there(pointer.operands[0]) or (None not in offsets and any(offsets))
    return isinstance(pointer, I.Alloca | GlobalVariable)


def _scalable(call: I.Call) -> bool:
    return any(isinstance(a.type, T.VectorType) and a.type.scalable for a in call.arguments)


def _fits(type_: T.FunctionType, shape: str, extended: bool) -> bool:
    result, parameters = (letters.replace("c", "ff") for letters in shape.split(":"))
    found = _letters(type_.result), "".join(_letters(t) for t in type_.parameters)
    if extended and "x" in found[0] + found[1]:
        result, parameters = result.replace("f", "x"), parameters.replace("f", "x")
    return found == (result, parameters)


def _letters(type_: T.Type) -> str:
    """The real numbers (`x`: extended ones), integers or pointers that a value of a type consists of."""
    match type_:
        case T.FloatType("float" | "double"):
            return "f"
        case T.FloatType("x86_fp80" | "fp128"):
            return "x"
        case T.IntType():
            return "i"
        case T.PointerType():
            return "p"
        case T.VoidType():
            return "v"
        case T.VectorType(count, element, False) | T.ArrayType(count, element):
            return _letters(element) * count
        case T.StructType(elements):
            return "".join(map(_letters, elements))
        case _:
            return "?"
