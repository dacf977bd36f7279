"""Intrinsics for the vector instructions of x86, in terms that every part of the engine knows.

    before    %r = call <4 x double> @llvm.x86.avx.hadd.pd.256(<4 x double> %a, <4 x double> %b)
    after     %x = shufflevector <4 x double> %a, <4 x double> %b, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
              %y = shufflevector <4 x double> %a, <4 x double> %b, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
              %r = fadd <4 x double> %x, %y

Only derivatives are made of this: the kernel itself keeps its instructions. What each computes is told in Intel's
Software Developer's Manual, volume 2, under the instruction's name. Minima, maxima and approximate reciprocals of all
lanes have rules (`rules.names`); those of the first lane alone become these. So do minima and maxima of inline
assembly, which Eigen takes for clang, and square roots, which Rust's libm and musl take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int, zero
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, Module, callee_name, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import ConstantSplat, InlineAsm, Value, int_value
from jax_enzyme.rules.declare import Declarations, overload
from jax_enzyme.transform.rewriting import Change, rewrite
from jax_enzyme.transform.x86_masks import Lowering, gathered, masked_lowering, multiplied, vector

_PREFIX = "llvm.x86."
_PER_BLOCK = 16
"""Bytes: most instructions on longer vectors do the same to each 16 of them."""
_PREDICATES = (
    "oeq", "olt", "ole", "uno", "une", "uge", "ugt", "ord", "ueq", "ult", "ule", "false", "one", "oge", "ogt", "true",
)  # fmt: skip
_COMPARED = {"eq": "oeq", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "neq": "une"}
_ROUNDINGS = {0: "rint", 1: "floor", 2: "ceil", 3: "trunc"}
_CURRENT_DIRECTION = 4

_ASSEMBLED = re.compile(
    r"(?:v(?P<v>min|max)p[sd]\s+\$1, ?\$2, ?\$0 =x,x,x|(?P<two>min|max)p[sd]\s+\$1, ?\$0 =x,x,0)(?:,~.*)?"
)
"""The template and the constraints of one instruction, in AT&T's order; without `v` it overwrites an operand."""

_ROOT = re.compile(r"sqrts(?P<width>[sd]) (?:\$1, ?\$0 =x,x|(\$0|\$\{0:x\}), ?\2 =&?x,0)(?:,~.*)?")
"""The same for the square root of one number: between two registers, or in one, whatever the dialect."""

_COMPARISON = re.compile(r"(?:sse2?|avx)\.cmp\.(?P<width>[ps][sd])(?:\.256)?")


def lower_x86_vectors(module: Module) -> Module:
    """A copy of the module without such calls; the module itself where there are none."""
    named = any(name.startswith(_PREFIX) for name in module.functions)
    instructions = (i for f in module.functions.values() for i in f.instructions())
    if not named and not any(_assembled(i) or _is_root(i) for i in instructions):
        return module
    copy = clone(module)
    for function in list(copy.functions.values()):
        _lower(function, Declarations(copy))
    return copy


def _lower(function: Function, declarations: Declarations) -> None:
    users = uses(function)

    def change_of(instruction: I.Instruction) -> Change | None:
        if not isinstance(instruction, I.Call):
            return None
        if (extremum := _assembled(instruction)) is not None:
            return lambda at: _extreme(at, declarations, extremum, instruction)
        if _is_root(instruction):
            return lambda at: declarations.call(at, "sqrt", instruction.arguments, instruction.type)
        if not callee_name(instruction).startswith(_PREFIX):
            return None
        name = callee_name(instruction).removeprefix(_PREFIX)
        for pattern, lowering in _TABLE.items():
            match = pattern.fullmatch(name)
            if match and all(int_value(a) is not None for a in instruction.arguments if a.type == T.I8):
                return lambda at: lowering(at, declarations, match, instruction)
        if (masked := masked_lowering(name.removeprefix("avx512."), instruction)) is not None:
            return lambda at: masked[0](at, declarations, masked[1], instruction)
        if match := _COMPARISON.fullmatch(name):
            alone = match["width"][0] == "p" or _first_alone_counts(instruction, users)
            return lambda at: _masks(at, instruction, alone)
        return None

    rewrite(function, change_of)


def _first_alone_counts(call: I.Call, users: Mapping[Value, Sequence[tuple[I.Instruction, int]]]) -> bool:
    """Whether no other lane of a vector ends anywhere. Optimisers see that only where each value has one use."""

    def further(value: Value) -> list[I.Instruction]:
        return [user for user, _ in users.get(value, ()) if not _takes_first(user)]

    vectors = reached([call], further, _keeps_lanes)
    return all(_keeps_lanes(user) for value in vectors for user in further(value))


def _takes_first(user: I.Instruction) -> bool:
    return isinstance(user, I.ExtractElement) and int_value(user.operands[1]) == 0


def _keeps_lanes(value: Value) -> bool:
    """Whether an operation on vectors of equal length deals with each lane by itself; so for calls, where it starts."""
    if not isinstance(value, I.Call | I.Cast | I.BinaryOp) or not isinstance(value.type, T.VectorType):
        return False
    return isinstance(value, I.Call) or all(vector(v).count == value.type.count for v in value.operands)


def _choice(value: Value) -> int:
    found = int_value(value)
    assert found is not None
    return found & 0xFF


def _block(kind: T.VectorType) -> int:
    """Lanes in one block of 16 bytes."""
    return min(kind.count, _PER_BLOCK // (4 if kind.element == T.FLOAT else 8))


def _integers(kind: T.VectorType) -> T.VectorType:
    return T.VectorType(kind.count, T.I32 if kind.element in (T.FLOAT, T.I32) else T.I64)


def _signs(at: Builder, declarations: Declarations, mask: Value) -> Value:
    """Of each lane, whether its highest bit is set. Numbers are asked for their sign, without a look at their bits."""
    kind = vector(mask)
    if isinstance(mask, I.Cast) and mask.opcode == "bitcast" and mask.operands[0].type == _integers(kind):
        return at.icmp("slt", mask.operands[0], zero(_integers(kind)))
    if not T.is_float(kind.element):
        return at.icmp("slt", mask, zero(kind))
    ones = ConstantSplat(kind, const_float(kind.element, 1.0))
    return at.fcmp("olt", declarations.call(at, "copysign", [ones, mask], kind), zero(kind))


def _first_lane(at: Builder, first: Value, others: Value) -> Value:
    count = vector(others).count
    return at.shuffle(first, others, [0, *range(count + 1, 2 * count)])


def _horizontal(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    kind = vector(call)
    count, block = kind.count, _block(kind)
    even = [
        start + other + lane for start in range(0, count, block) for other in (0, count) for lane in range(0, block, 2)
    ]
    a, b = call.arguments
    x, y = (at.shuffle(a, b, [lane + odd for lane in even]) for odd in (0, 1))
    return at.binary(f"f{match['operation']}", x, y)


def _alternating(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    x, y = call.arguments
    count = vector(call).count
    lanes = [lane + count * (lane % 2) for lane in range(count)]
    return at.shuffle(at.binary("fsub", x, y), at.binary("fadd", x, y), lanes)


def _blended(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    x, y, mask = call.arguments
    return at.select(_signs(at, declarations, mask), y, x)


def _rounded(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    *others, x, how = call.arguments
    choice = _choice(how)
    name = "rint" if choice & _CURRENT_DIRECTION else _ROUNDINGS[choice & 3]
    result = declarations.call(at, name, [x], x.type)
    return _first_lane(at, result, others[0]) if others else result


def _dot(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    x, y, how = call.arguments
    kind, choice = vector(call), _choice(how)
    block, nothing = _block(kind), zero(kind)
    lanes = range(kind.count)

    def only(value: Value, bits: int) -> Value:
        return at.shuffle(value, nothing, [i if bits >> i % block & 1 else kind.count + i for i in lanes])

    total = at.binary("fmul", only(x, choice >> 4), only(y, choice >> 4))
    step = 1
    while step < block:
        total = at.binary("fadd", total, at.shuffle(total, None, [i ^ step for i in lanes]))
        step *= 2
    return only(total, choice)


def _assembled(instruction: I.Instruction) -> str | None:
    """The operation, where an instruction is inline assembly for the minimum or the maximum of all lanes."""
    if not isinstance(instruction, I.Call) or not isinstance(instruction.callee, InlineAsm):
        return None
    code, kind = instruction.callee, instruction.type
    match = None if code.flags else _ASSEMBLED.fullmatch(f"{code.template.strip()} {code.constraints}")
    if match is None or not isinstance(kind, T.VectorType) or any(a.type != kind for a in instruction.arguments):
        return None
    suffix = "s" if kind.element == T.FLOAT else "d"
    return match["v"] or match["two"] if f"p{suffix}" in code.template and T.is_float(kind.element) else None


def _is_root(instruction: I.Instruction) -> bool:
    """Whether an instruction is inline assembly for the square root of one number."""
    if not isinstance(instruction, I.Call) or not isinstance(instruction.callee, InlineAsm):
        return False
    code = instruction.callee
    match = _ROOT.fullmatch(f"{' '.join(code.template.split())} {code.constraints}")
    kind = T.DOUBLE if match and match["width"] == "d" else T.FLOAT
    return match is not None and [instruction.type, *(a.type for a in instruction.arguments)] == [kind, kind]


def _extreme(at: Builder, declarations: Declarations, operation: str, call: I.Call) -> Value:
    """The intrinsic for an instruction, whose last operand comes first for assemblers."""
    kind = vector(call)
    single, wide = kind.element == T.FLOAT, kind.count * (4 if kind.element == T.FLOAT else 8) > _PER_BLOCK
    set_ = "avx" if wide else "sse" if single else "sse2"
    name = f"{_PREFIX}{set_}.{operation}.{'ps' if single else 'pd'}{'.256' if wide else ''}"
    return declarations.invoke(at, name, kind, call.arguments[::-1])


def _of_first(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    """`max.sd` and its kin: the instruction on all lanes has a rule."""
    set_, kind = ("sse", "ps") if match["width"] == "s" else ("sse2", "pd")
    type_ = vector(call)
    name = f"{_PREFIX}{set_}.{match['operation']}.{kind}"
    # The other lanes may hold anything, such as zeros, whose reciprocals have infinite derivatives.
    first = [at.shuffle(v, None, [0] * type_.count) for v in call.arguments]
    return _first_lane(at, declarations.invoke(at, name, type_, first), call.arguments[0])


def _inserted(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    """`insertps`: one lane of the second vector in a lane of the first, and zeros in some."""
    x, y, how = call.arguments
    choice, lanes = _choice(how), list(range(4))
    lanes[choice >> 4 & 3] = 4 + (choice >> 6)
    merged = at.shuffle(x, y, lanes)
    return at.shuffle(merged, zero(vector(x)), [lane + 4 * (choice >> lane & 1) for lane in range(4)])


def _masks(at: Builder, call: I.Call, alone: bool) -> Value:
    """Of each lane; where `alone` is false, of the first one beside those of the first argument."""
    x, y, how = call.arguments
    kind = vector(call)
    truth = at.cast("sext", at.fcmp(_PREDICATES[_choice(how) & 15], x, y), _integers(kind))
    masks = at.cast("bitcast", truth, kind)
    return masks if alone else _first_lane(at, masks, x)


def _ordered(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    x, y = (at.extract_element(v, 0) for v in call.arguments)
    return at.cast("zext", at.fcmp(_COMPARED[match["relation"]], x, y), T.I32)


def _sign_bits(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    (x,) = call.arguments
    bits = T.IntType(vector(x).count)
    return at.cast("zext", at.cast("bitcast", _signs(at, declarations, x), bits), T.I32)


def _loaded(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    pointer, mask = call.arguments
    kind = vector(call)
    given = [pointer, _signs(at, declarations, mask), zero(kind)]
    return declarations.invoke(at, f"llvm.masked.load.{overload(kind)}.p0", kind, given)


def _loaded_whole(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    words = T.VectorType(vector(call).count // 8, T.I64)
    return at.cast("bitcast", at.load(words, call.arguments[0], 1), call.type)


def _stored(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> None:
    pointer, mask, value = call.arguments
    given = [value, pointer, _signs(at, declarations, mask)]
    declarations.invoke(at, f"llvm.masked.store.{overload(value.type)}.p0", T.VOID, given)


def _gathered(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    old, base, indices, mask, how = call.arguments
    return gathered(at, declarations, old, base, indices, _signs(at, declarations, mask), _choice(how))


def _permuted(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    x, indices = call.arguments
    kind = vector(call)
    across = match["operation"] == "permps"
    block = kind.count if across else _block(kind)
    # Numbers of 64 bits are chosen by the second bit of an index.
    shift = 0 if across or kind.element == T.FLOAT else 1
    found: list[Value] = []
    for lane in range(kind.count):
        index = at.extract_element(indices, lane)
        if shift:
            index = at.binary("lshr", index, const_int(index.type, shift))
        index = at.binary("and", index, const_int(index.type, block - 1))
        index = at.binary("or", index, const_int(index.type, lane // block * block))
        found.append(at.extract_element(x, index))
    return at.pack(kind, found)


def _narrowed(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    *others, x = call.arguments
    kind, lanes = vector(call), range(vector(x).count)
    narrow = at.cast("fptrunc", x, T.VectorType(len(lanes), T.FLOAT))
    wide = at.shuffle(narrow, zero(narrow.type), [*lanes, *(len(lanes) for _ in range(kind.count - len(lanes)))])
    return _first_lane(at, wide, others[0]) if others else wide


def _tested(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    """Whether no lane is negative in both (`z`), or in the second alone (`c`), or neither (`nzc`); for `ptest`, whether
    no bit is set so."""
    bits = T.IntType(64 * vector(call.arguments[0]).count)
    given = call.arguments
    if match["lanes"]:
        given = [_signs(at, declarations, v) for v in given]
        bits = T.IntType(vector(given[0]).count)
    x, y = (at.cast("bitcast", v, bits) for v in given)
    both = at.binary("and", x, y)
    none = const_int(bits, 0)
    second = at.binary("and", at.binary("xor", x, const_int(bits, -1)), y)
    truth: Mapping[str, Callable[[], Value]] = {
        "z": lambda: at.icmp("eq", both, none),
        "c": lambda: at.icmp("eq", second, none),
        "nzc": lambda: at.binary("and", at.icmp("ne", both, none), at.icmp("ne", second, none)),
    }
    return at.cast("zext", truth[match["what"]](), T.I32)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace(".", r"\.").replace("@", "p[sd]"))


_TABLE: Mapping[re.Pattern[str], Lowering] = {
    _pattern(text): lowering
    for text, lowering in (
        ("(?:sse3|avx).h(?P<operation>add|sub).@(?:.256)?", _horizontal),
        ("(?:sse3|avx).addsub.@(?:.256)?", _alternating),
        ("(?:sse41.blendv@|avx.blendv.@.256)", _blended),
        ("(?:sse41|avx).round.[ps][sd](?:.256)?", _rounded),
        ("(?:sse41.dp@|avx.dp.ps.256)", _dot),
        ("sse2?.(?P<operation>min|max|rcp|rsqrt).s(?P<width>[sd])", _of_first),
        ("sse2?.u?comi(?P<relation>eq|lt|le|gt|ge|neq)(?:.s[sd])?", _ordered),
        ("(?:sse2?|avx).movmsk.@(?:.256)?", _sign_bits),
        ("avx2?.maskload.(?:@|[dq])(?:.256)?", _loaded),
        ("avx2?.maskstore.(?:@|[dq])(?:.256)?", _stored),
        ("avx2.gather.[dq].(?:@|[dq])(?:.256)?", _gathered),
        ("(?:avx.vpermilvar.@(?:.256)?|avx2.(?P<operation>permps))", _permuted),
        ("(?:sse2.cvt(?:pd2ps|sd2ss)|avx.cvt.pd2.ps.256)", _narrowed),
        ("(?:sse41.ptest|avx.(?:ptest|(?P<lanes>vtest)))(?P<what>z|c|nzc)(?:.@)?(?:.256)?", _tested),
        ("fma.vfmaddsub.@(?:.256)?", multiplied),
        ("sse41.insertps", _inserted),
        ("(?:sse3|avx).ldu.dq(?:.256)?", _loaded_whole),
    )
}
