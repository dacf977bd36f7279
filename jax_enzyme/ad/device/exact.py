"""Sums that do not depend on the order of threads: `Options(deterministic=True)` on a device.

    before    atomicrmw fadd ptr %at, double %x              after    je.exact.add(words of %at, %x)
              %y = load double, ptr %at                               %y = load + je.exact.value(words of %at)
              store double %z, ptr %at                                je.exact.clear(words of %at); store

Rounding makes sums of floating-point numbers depend on their order; integers do not round. So beside every place that
is added to atomically lie the words of one long fixed-point number, which has a digit for every power of 2^28 that the
type can hold: an addition takes two or three integer additions. A word has room for 2^35 of them, more than a launch
can make in half a minute. What a place holds is its memory and its words together. A second launch adds the words of
buffers to their memory; shared memory has its words in a buffer as well, which nobody needs at the end. Infinities and
NaNs are bits in a word of their own.

This is done to the function that is launched, the kernel itself or a derivative of any order: derivatives are taken of
the additions.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from jax_enzyme.ad.device.counting import widened
from jax_enzyme.ad.device.last_stage import Threads, add_last_stage, add_to
from jax_enzyme.ad.device.threads import is_shared_memory
from jax_enzyme.ad.emit.runtime import defined
from jax_enzyme.ad.facts.causes import ORDERED_RESULT, UNORDERED_SUM
from jax_enzyme.ad.facts.errors import refuse
from jax_enzyme.analysis.accesses import Access, accesses
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES, Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, Value, is_zero
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.device import canonical, restore
from jax_enzyme.transform.device.flat import SHARED, is_dynamic
from jax_enzyme.transform.device.registers import EXACT, block_number, thread_number
from jax_enzyme.transform.rewriting import Change, rewrite

_ATOMIC = (I.AtomicRMW, I.CmpXchg)
_DIGIT = 28
_TEXT = """
define internal void @je.exact.add.KIND(ptr %place, i64 %stride, TYPE %given) nounwind {
entry:
  %value = WIDENED
  %bits = bitcast double %value to i64
  %negative = icmp slt i64 %bits, 0
  %magnitude = and i64 %bits, 9223372036854775807
  %none = icmp eq i64 %magnitude, 0
  br i1 %none, label %done, label %some

some:
  %fraction = and i64 %magnitude, 4503599627370495
  %exponent = lshr i64 %magnitude, 52
  %special = icmp eq i64 %exponent, 2047
  br i1 %special, label %flag, label %finite

flag:
  %nan = icmp ne i64 %fraction, 0
  %infinite = select i1 %negative, i64 4, i64 2
  %bit = select i1 %nan, i64 1, i64 %infinite
  %flags.offset = mul i64 %stride, WORDS
  %flags = getelementptr inbounds i64, ptr %place, i64 %flags.offset
  %before = atomicrmw or ptr %flags, i64 %bit monotonic
  br label %done

finite:
  %normal = icmp ne i64 %exponent, 0
  %hidden = select i1 %normal, i64 4503599627370496, i64 0
  %mantissa = or i64 %fraction, %hidden
  %steps = select i1 %normal, i64 %exponent, i64 1
  %position = sub i64 %steps, FIRST
  %below = icmp slt i64 %position, 0
  %down = sub i64 0, %position
  %right = select i1 %below, i64 %down, i64 0
  %left = select i1 %below, i64 0, i64 %position
  %whole = lshr i64 %mantissa, %right
  %word = udiv i64 %left, DIGIT
  %shift = urem i64 %left, DIGIT
  %wide = zext i64 %whole to i128
  %shift.wide = zext i64 %shift to i128
  %shifted = shl i128 %wide, %shift.wide
  %offset = mul i64 %word, %stride
  %first = getelementptr inbounds i64, ptr %place, i64 %offset
  br label %deposit

deposit:
  %rest = phi i128 [ %shifted, %finite ], [ %higher, %deposit ]
  %at = phi ptr [ %first, %finite ], [ %next, %deposit ]
  %lowest = trunc i128 %rest to i64
  %digit = and i64 %lowest, MASK
  %minus = sub i64 0, %digit
  %signed = select i1 %negative, i64 %minus, i64 %digit
  %old = atomicrmw add ptr %at, i64 %signed monotonic
  %higher = lshr i128 %rest, DIGIT
  %next = getelementptr inbounds i64, ptr %at, i64 %stride
  %more = icmp ne i128 %higher, 0
  br i1 %more, label %deposit, label %done

done:
  ret void
}

define internal void @je.exact.clear.KIND(ptr %place, i64 %stride) nounwind {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, %stride
  %at = getelementptr inbounds i64, ptr %place, i64 %offset
  store i64 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ule i64 %next, WORDS
  br i1 %more, label %loop, label %done

done:
  ret void
}

define internal TYPE @je.exact.value.KIND(ptr %place, i64 %stride) nounwind {
entry:
  br label %carry

carry:
  %i = phi i64 [ 0, %entry ], [ %i.next, %carry ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %carry ]
  %i.offset = mul i64 %i, %stride
  %i.at = getelementptr inbounds i64, ptr %place, i64 %i.offset
  %i.word = load i64, ptr %i.at
  %i.sum = add i64 %i.word, %c
  %c.next = ashr i64 %i.sum, DIGIT
  %i.next = add nuw nsw i64 %i, 1
  %i.more = icmp ult i64 %i.next, WORDS
  br i1 %i.more, label %carry, label %sign

sign:
  %negative = icmp slt i64 %c.next, 0
  br label %digits

digits:
  %j = phi i64 [ 0, %sign ], [ %j.next, %digits ]
  %k = phi i64 [ 0, %sign ], [ %k.next, %digits ]
  %total = phi double [ 0.0, %sign ], [ %total.next, %digits ]
  %j.offset = mul i64 %j, %stride
  %j.at = getelementptr inbounds i64, ptr %place, i64 %j.offset
  %j.word = load i64, ptr %j.at
  %j.minus = sub i64 0, %j.word
  %j.signed = select i1 %negative, i64 %j.minus, i64 %j.word
  %j.sum = add i64 %j.signed, %k
  %digit = and i64 %j.sum, MASK
  %k.next = ashr i64 %j.sum, DIGIT
  %term = call double @je.exact.scaled.KIND(i64 %digit, i64 %j)
  %total.next = fadd double %total, %term
  %j.next = add nuw nsw i64 %j, 1
  %j.more = icmp ult i64 %j.next, WORDS
  br i1 %j.more, label %digits, label %end

end:
  %last = call double @je.exact.scaled.KIND(i64 %k.next, i64 WORDS)
  %size = fadd double %total.next, %last
  %minus = fneg double %size
  %finite = select i1 %negative, double %minus, double %size
  %flags.offset = mul i64 %stride, WORDS
  %flags.at = getelementptr inbounds i64, ptr %place, i64 %flags.offset
  %flags = load i64, ptr %flags.at
  %up = and i64 %flags, 2
  %down = and i64 %flags, 4
  %is.up = icmp ne i64 %up, 0
  %is.down = icmp ne i64 %down, 0
  %some = select i1 %is.down, double 0xFFF0000000000000, double %finite
  %bounded = select i1 %is.up, double 0x7FF0000000000000, double %some
  %known = icmp ugt i64 %flags, 4
  %odd = trunc i64 %flags to i1
  %both = or i1 %known, %odd
  %value = select i1 %both, double 0x7FF8000000000000, double %bounded
  %result = NARROWED
  ret TYPE %result
}

define internal double @je.exact.scaled.KIND(i64 %digit, i64 %word) nounwind alwaysinline {
entry:
  %number = sitofp i64 %digit to double
  %up = mul i64 %word, DIGIT
  %power = add i64 %up, UNIT
  %half = ashr i64 %power, 1
  %rest = sub i64 %power, %half
  %half.biased = add i64 %half, 1023
  %rest.biased = add i64 %rest, 1023
  %half.bits = shl i64 %half.biased, 52
  %rest.bits = shl i64 %rest.biased, 52
  %half.factor = bitcast i64 %half.bits to double
  %rest.factor = bitcast i64 %rest.bits to double
  %part = fmul double %number, %half.factor
  %scaled = fmul double %part, %rest.factor
  ret double %scaled
}
"""


@dataclass(frozen=True)
class _Kind:
    """A type of numbers: its name, the power of two of its smallest number, and how many words hold all its powers."""

    type: T.FloatType
    unit: int
    words: int

    @property
    def size(self) -> int:
        return 8 if self.type == T.DOUBLE else 4

    def function(self, module: Module, what: str) -> Function:
        return defined(module, f"{EXACT}{what}.{self.type.kind}", self._text())

    def _text(self) -> str:
        is_double = self.type == T.DOUBLE
        words = {
            "WIDENED": "bitcast double %given to double" if is_double else "fpext float %given to double",
            "NARROWED": "bitcast double %value to double" if is_double else "fptrunc double %value to float",
            "KIND": self.type.kind,
            "TYPE": str(self.type),
            "WORDS": str(self.words),
            "UNIT": str(self.unit),
            "FIRST": str(1075 + self.unit),
            "DIGIT": str(_DIGIT),
            "MASK": str((1 << _DIGIT) - 1),
        }
        text = _TEXT
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return text


_KINDS: dict[T.Type, _Kind] = {T.DOUBLE: _Kind(T.DOUBLE, -1074, 76), T.FLOAT: _Kind(T.FLOAT, -149, 11)}


def reproducible(function: DeviceFunction) -> DeviceFunction:
    """What is launched in the place of a device function of one stage, and gives the same in any order of threads. The
    function itself where nothing is atomic. It has no derivative.

    Raises DifferentiationError where the order of threads matters in other ways than by sums, or where other accesses
    of what is summed are not understood.
    """
    if not any(isinstance(i, _ATOMIC) for f in function.module.functions.values() for i in f.instructions()):
        return function
    form = canonical(function)
    module = clone(form.module)
    (symbol,) = form.symbols
    target = module.functions[symbol]
    _refuse_order(module, target)
    if not any(map(_is_sum, target.instructions())):
        return function
    sums = _Sums(module, target, form.buffers, form.shape)
    buffers = (*form.buffers, *sums.buffers)
    symbols = (symbol, sums.finish()) if sums.outlast else (symbol,)
    restored, shape = restore(module, form.shape)
    count = None if form.count is None else widened(form.count, buffers)
    return replace(form, module=restored, symbols=symbols, buffers=buffers, shape=shape, count=count)


def _is_sum(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.AtomicRMW) and instruction.operation == "fadd"


def _refuse_order(module: Module, function: Function) -> None:
    """Refuses the use of what an atomic operation returns."""
    used = {v for i in function.instructions() for v in i.operands}
    for instruction in function.instructions():
        exchanges = isinstance(instruction, I.AtomicRMW) and instruction.operation == "xchg"
        if isinstance(instruction, _ATOMIC) and (exchanges or instruction in used):
            raise refuse(module, instruction, ORDERED_RESULT)


@dataclass(frozen=True)
class _Place:
    """Where numbers are added: `count` of them from `base` on, for each of `blocks` blocks."""

    kind: _Kind
    name: str
    base: Value
    count: int
    blocks: int


class _Sums:
    """Rewrites the function of one thread in place. `buffers` are the words, `outlast` the places whose numbers are
    wanted when it is done."""

    def __init__(self, module: Module, function: Function, buffers: tuple[Buffer, ...], shape: Shape) -> None:
        self._module = module
        self._function = function
        self._shape = shape
        self._layout = DataLayout(module)
        self._given = dict(zip(function.arguments, buffers, strict=True))
        self._places: dict[MemoryObject, dict[T.Type, _Place]] = {}
        self._words: dict[_Place, Argument] = {}
        points_to = PointsTo(module, function)
        found = list(accesses(points_to, function, self._layout))
        for access in found:
            if _is_sum(access.instruction):
                item, place = self._place(access)
                self._places.setdefault(item, {}).setdefault(place.kind.type, place)
        touching = {a.instruction: self._checked(a) for a in found if points_to.may_meet(a.objects, self._places)}
        self.buffers = tuple(
            Buffer(f"words{n}", "i64", (p.kind.words + 1, p.blocks * p.count), "scratch", "tape", zero=True)
            for n, p in enumerate(self._all())
        )
        self.outlast = [p for p in self._all() if isinstance(p.base, Argument)]
        self._widen(function)
        self._rewrite(touching)

    def _all(self) -> list[_Place]:
        return [place for kinds in self._places.values() for place in kinds.values()]

    def _refused(self, access: Access, obstacle: str) -> DifferentiationError:
        touched = {p.name for p in self._all() if any(p in self._places.get(o, {}).values() for o in access.objects)}
        names = ", ".join(sorted(touched)) or "memory"
        return UNORDERED_SUM.error(names=f"`{names}`", obstacle=obstacle)

    def _place(self, access: Access) -> tuple[MemoryObject, _Place]:
        kind = _KINDS.get(access.instruction.type)
        if kind is None:
            raise self._refused(access, f"holds numbers of the type {access.instruction.type}")
        if len(access.objects) != 1:
            raise self._refused(access, "is one of several arrays")
        (item,) = access.objects
        if isinstance(item.site, Argument) and item.site in self._given:
            buffer = self._given[item.site]
            count = prod(buffer.shape) * ITEM_BYTES[buffer.dtype] // kind.size
            return item, _Place(kind, buffer.name, item.site, count, 1)
        if isinstance(item.site, GlobalVariable) and is_shared_memory(item):
            x, y, z = self._shape.grid
            type_ = item.site.value_type
            size = self._shape.shared if is_dynamic(item.site) else self._layout.alloc_size(type_)
            name = item.site.name.removeprefix(SHARED)
            return item, _Place(kind, name, item.site, -(-size // kind.size), x * y * z)
        raise self._refused(access, "is neither a buffer nor shared memory")

    def _checked(self, access: Access) -> MemoryObject:
        """The one object of an access that touches what is summed."""
        item = next(iter(access.objects))
        if len(access.objects) != 1 or item not in self._places:
            raise self._refused(access, "may be one of several arrays that a pointer leads to")
        match access.instruction:
            case I.AtomicRMW() as atomic if _is_sum(atomic):
                pass
            case I.Load() as load if _element(load.type) is not None:
                pass
            case I.Store() as store if _element(store.operands[0].type) is not None or _zeros(
                store.operands[0], access
            ):
                pass
            case _:
                raise self._refused(access, "is also read or written in another way")
        return item

    def _widen(self, function: Function) -> None:
        """Parameters for the words."""
        first = len(function.arguments)
        for number, place in enumerate(self._all()):
            self._words[place] = Argument(T.PTR, (), first + number, name=f"words{number}")
        function.arguments = [*function.arguments, *self._words.values()]
        function.value_type = T.FunctionType(T.I64, (T.PTR,) * len(function.arguments))

    def _rewrite(self, touching: dict[I.Instruction, MemoryObject]) -> None:
        def change_of(instruction: I.Instruction) -> Change | None:
            item = touching.get(instruction)
            return None if item is None else lambda at: self._done(at, instruction, item)

        rewrite(self._function, change_of)

    def _done(self, at: Builder, instruction: I.Instruction, item: MemoryObject) -> Value | None:
        kinds = self._places[item]
        match instruction:
            case I.AtomicRMW():
                pointer, value = instruction.operands
                self._call(at, "add", kinds[value.type], pointer, value)
                return None
            case I.Store():
                size = self._layout.store_size(instruction.operands[0].type)
                for place in kinds.values():
                    for start in range(0, size, place.kind.size):
                        self._call(at, "clear", place, at.offset(instruction.operands[1], start))
                at.insert(instruction)
                return None
            case _:
                return self._loaded(at, instruction, kinds.get(_element(instruction.type) or instruction.type))

    def _loaded(self, at: Builder, load: I.Instruction, place: _Place | None) -> Value | None:
        """What is loaded and what was added since; a type that is never added has places of its own."""
        if place is None:
            at.insert(load)
            return None
        assert isinstance(load, I.Load)
        pointer = load.operands[0]
        total = at.load(load.type, pointer, load.align)
        if not isinstance(load.type, T.VectorType):
            return at.binary("fadd", total, self._call(at, "value", place, pointer))
        for lane in range(load.type.count):
            part = at.extract_element(total, lane)
            sum_ = at.binary("fadd", part, self._call(at, "value", place, at.offset(pointer, lane * place.kind.size)))
            total = at.insert_element(total, sum_, lane)
        return total

    def _call(self, at: Builder, what: str, place: _Place, pointer: Value, *more: Value) -> Value:
        """Does something with the words of the place behind a pointer."""
        start, here = (at.cast("ptrtoint", p, T.I64) for p in (place.base, pointer))
        number = at.binary("lshr", at.binary("sub", here, start), const_int(T.I64, place.kind.size.bit_length() - 1))
        if place.blocks > 1:
            block = block_number(self._module, at, self._shape)
            number = at.binary("add", number, at.binary("mul", block, const_int(T.I64, place.count)))
        words = at.gep(T.I64, self._words[place], [number])
        stride = const_int(T.I64, place.blocks * place.count)
        return at.call(place.kind.function(self._module, what), [words, stride, *more])

    def finish(self) -> str:
        """Adds the function of the second launch: every thread adds some words to their memory."""
        name = f"{self._function.name}.sums"
        arguments = [replace(a, attributes=()) for a in self._function.arguments]
        given: dict[Value, Argument] = dict(zip(self._function.arguments, arguments, strict=True))

        def part(place: _Place) -> tuple[int, Callable[[Builder, Value], None]]:
            def add(at: Builder, number: Value) -> None:
                word = at.gep(T.I64, given[self._words[place]], [number])
                value = at.call(place.kind.function(self._module, "value"), [word, const_int(T.I64, place.count)])
                add_to(at, place.kind.type, given[place.base], number, value)

            return place.count, add

        count = prod(self._shape.grid) * self._shape.threads
        threads = Threads(count, lambda at: thread_number(self._module, at, self._shape))
        add_last_stage(self._module, name, arguments, threads, map(part, self.outlast))
        return name


def _element(type_: T.Type) -> T.Type | None:
    """The type of the numbers that a value of a type is, one or several; None where it is something else."""
    element = T.scalar(type_)
    return element if element in _KINDS else None


def _zeros(value: Value, access: Access) -> bool:
    return is_zero(value) and access.size is not None and access.size % 4 == 0
