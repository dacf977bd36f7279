"""Every cause for which a derivative is refused, as one table: the engine raises its entries, and the page
`docs/refusals.md` is made of them (`python -m jax_enzyme.ad.docs > docs/refusals.md`).

What functions have no derivative for reasons of their own is said by their rows in `jax_enzyme/rules`.
"""

from __future__ import annotations

import enum

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import DifferentiationError, NoRuleError, NotDifferentiableError


class Kind(enum.Enum):
    """What sort of refusal it is, and the error that says so."""

    NO_RULE = "no rule exists"
    NOT_DIFFERENTIABLE = "not differentiable"
    NOT_PROVABLE = "not provable"
    LIMIT = "limit of the engine"

    @property
    def error(self) -> type[DifferentiationError]:
        match self:
            case Kind.NO_RULE:
                return NoRuleError
            case Kind.NOT_DIFFERENTIABLE:
                return NotDifferentiableError
            case _:
                return DifferentiationError


@dataclass(frozen=True)
class Cause:
    """One entry: `what` is refused, as the message says it, `why`, and what to do instead. `{words}` are filled in."""

    key: str
    kind: Kind
    what: str
    why: str
    remedy: str

    def error(self, subject: str = "", place: str | None = None, **words: object) -> DifferentiationError:
        """The error for a `subject`, an instruction as a rule."""
        what = self.what.format(**words)
        return self.kind.error(f"{subject}: {what}" if subject else what, place, self.remedy.format(**words))


UNKNOWN_CALL = Cause(
    "unknown call",
    Kind.NO_RULE,
    "a derivative depends on it, and there is neither its source nor a rule",
    "it may compute anything of what it is given, and keep it for a later call",
    "add the source of `{name}` to the kernel's, or give the kernel a rule for it:\n"
    'rules=(je.rule("{name}", ...),), or je.inactive("{name}") where no derivative passes',
)
COMMUNICATION = Cause(
    "unknown call of MPI",
    Kind.NO_RULE,
    "numbers may pass to other processes or to a file, and there is no rule for it with this datatype and operation",
    "which numbers travel is told by the datatype, which has to be a constant; what other processes do with them is "
    "not known here, so that no such call is taken for one without derivative",
    "send MPI_DOUBLE, MPI_FLOAT or their kin, named in the call or in the function that calls it, and the integers of\n"
    "a structure in a message of their own; keep files for numbers that no derivative depends on, and one-sided calls\n"
    "for code around the kernel;\n"
    "docs/mpi.md lists the functions that have rules",
)
UNKNOWN_POINTER_CALL = Cause(
    "call through a pointer",
    Kind.NO_RULE,
    "a derivative depends on it, and it may lead to any function",
    "which function is called is not known when the derivative is made",
    "call the function by its name, or let the source show which functions the pointer may lead to",
)
ASSEMBLY = Cause(
    "inline assembly",
    Kind.NO_RULE,
    "a derivative depends on it, and assembly does not say what it computes",
    "the compiler is told which registers and memory it touches, not what it does",
    "write it in the kernel's language, or as a function of its own with a rule",
)
BITS = Cause(
    "bits of a number",
    Kind.NOT_PROVABLE,
    "integer arithmetic on the bits of a number that a derivative depends on",
    "what the arithmetic means for the number cannot be told; copying, comparing, what changes signs and exponents, "
    "masks that cut off low digits, and straight lines of the bits (an inverse root, a logarithm) are known",
    "use fabs, fmax, fmin, copysign, frexp or ldexp from math.h instead of the number's bits",
)
HELD = Cause(
    "integer where a number may lie",
    Kind.NOT_PROVABLE,
    "arithmetic on an integer that is loaded where a number may lie that a derivative depends on",
    "whether the bits of the number are meant, or an integer that shares its place (a union with a tag, std::variant, "
    "a word that holds either), is known for integers as long as the number alone, and in first derivatives for an int "
    "beside double of which numbers are computed and that is not changed in place",
    "make the integer as long as the number (int64_t beside double), or give it memory of its own; where bits of a\n"
    "number are meant, use fabs, fmax, fmin, copysign, frexp or ldexp from math.h",
)
MADE = Cause(
    "number made of an integer",
    Kind.NOT_PROVABLE,
    "a number is made of an integer that was computed from one that a derivative depends on",
    "the integer is piecewise constant, but such code (fast exponentials, say) stands for a smooth function; known are "
    "powers of two, 2^n by the exponent's bits, and integers that keep 20 digits and are used for nothing else",
    "use exp, exp2, pow or ldexp from math.h instead of the number's bits",
)
PARTS = Cause(
    "part of a number",
    Kind.NOT_PROVABLE,
    "a part of a number that a derivative depends on is accessed, or taken for another type",
    "half of a number's bytes has no derivative",
    "access numbers as numbers of their own type",
)
NARROW = Cause(
    "number as an odd integer",
    Kind.NOT_PROVABLE,
    "a number that a derivative depends on passes as an integer of this width",
    "in reverse mode its adjoint needs a type: integers of 32 and 64 bits have that of `float` and `double`",
    "copy numbers as numbers of their own type",
)
RELOADED = Cause(
    "number as an integer of another size",
    Kind.NOT_PROVABLE,
    "the bits of numbers that a derivative depends on are loaded as an integer of another size",
    "in reverse mode its adjoint needs a type, and the memory holds numbers of another one",
    "copy numbers as numbers of their own type",
)
MIXED_COPY = Cause(
    "copy of mixed memory",
    Kind.LIMIT,
    "a copy of memory that holds {held}, on which a derivative depends",
    "the reverse of a copy adds cotangents, and has to know which bytes are numbers of which type",
    "copy the members one by one; a buffer for records with pointers is one of bytes (u8)",
)
IN_ONE_PLACE = Cause(
    "pointer and number in one place",
    Kind.LIMIT,
    "a pointer is stored where, at another time, a number may lie that a derivative depends on",
    "in reverse mode the shadow of the pointer lies where the number's adjoint does; in a buffer, or what may be one, "
    "a cotangent is given there",
    "keep pointers and numbers apart, each in a member, or in memory, of its own",
)
GOTO = Cause(
    "assembly that jumps",
    Kind.NOT_PROVABLE,
    "inline assembly may go on at any of its labels",
    "the way back has to know where control came from",
    "let the assembly give a number, and branch on that",
)
SETJMP = Cause(
    "setjmp",
    Kind.NOT_PROVABLE,
    "control may come back to it a second time",
    "what has been computed in between is undone or not, depending on where each variable is kept",
    "return an error code instead of jumping out of a function",
)
VARIADIC = Cause(
    "variadic numbers",
    Kind.NOT_PROVABLE,
    "numbers that a derivative depends on are passed without a name (`...`)",
    "how they are read on the other side depends on the machine's calling convention",
    "pass the numbers as named parameters, or in an array",
)
VOLATILE = Cause(
    "volatile memory",
    Kind.NOT_DIFFERENTIABLE,
    "volatile memory that a derivative depends on",
    "something else may change it, or be told by it: a device, a signal, another process",
    "remove `volatile`: memory that others change has no derivative",
)
DEVICE = Cause(
    "memory of a device",
    Kind.NOT_DIFFERENTIABLE,
    "memory at a fixed address, or of another address space, that a derivative may depend on",
    "it belongs to a device, or to nobody: no shadow can lie beside it",
    "keep numbers in memory that the kernel allocates or is given",
)
ORIGIN = Cause(
    "pointer of unknown origin",
    Kind.NOT_PROVABLE,
    "memory that is reached through a pointer of unknown origin, on which a derivative may depend",
    "an integer was made a pointer, or a function that is not known returned it: nobody knows what memory it leads to",
    "keep pointers as pointers, in memory that the kernel itself allocates or is given",
)
POINTERS_AS_INTEGERS = Cause(
    "pointers as other integers",
    Kind.LIMIT,
    "pointers to memory that a derivative depends on are kept as integers of another kind than one i64",
    "the shadow of a pointer goes along with it, and is followed through pointers and i64 alone",
    "keep pointers as pointers, or compile without vectorisation",
)
THROUGH_FILE = Cause(
    "numbers through a file",
    Kind.NOT_PROVABLE,
    "numbers that a derivative depends on are written where `{name}` may read them",
    "what is read again depends on what was written, and nobody follows it there",
    'keep the numbers in memory, or declare, where `{name}` does not read them:\nrules=(je.inactive("{name}"),)',
)
CHANGED_FILE = Cause(
    "file that is read again",
    Kind.NOT_PROVABLE,
    "the kernel may read a file here that is another one when it runs again: {why}",
    "a derivative that has no tape of the first run runs the kernel again, behind it",
    "pass what is read as an argument, or read and write files whose names are constants and differ, "
    'or declare, where nothing that is read changes:\nrules=(je.inactive("{name}"),)',
)
DRAWN_NUMBER = Cause(
    "number that is drawn again",
    Kind.NOT_PROVABLE,
    "a derivative depends on a number that is another one when the kernel runs again",
    "a derivative that has no tape of the first run runs the kernel again, and clocks go on meanwhile",
    'pass the number as an argument, or say that no derivative depends on it: rules=(je.inactive("{name}"),)',
)
ATOMIC = Cause(
    "atomic operation",
    Kind.LIMIT,
    "an atomic operation that a derivative depends on",
    "only additions, subtractions and exchanges of numbers go back atomically",
    "use atomic addition, subtraction or exchange of floating-point numbers, which have derivatives",
)
REALLOCATED = Cause(
    "resized memory",
    Kind.LIMIT,
    "memory that a derivative depends on is resized",
    "its shadow would have to be resized with it, and the resizing be undone on the way back",
    "allocate the final size at once, or copy into new memory",
)
ALLOCATOR = Cause(
    "unknown allocator",
    Kind.LIMIT,
    "the shadow of memory from this allocator cannot be made",
    "what its arguments mean is not known",
    "allocate with malloc, calloc, aligned_alloc or new",
)
GLOBAL = Cause(
    "file-scope variable",
    Kind.LIMIT,
    "the file-scope variable `{name}` holds numbers that a derivative depends on, and a function is called by address "
    "that uses it",
    "other variables of a file are private to a call; one that is reached so stays where it is, without a shadow",
    "pass it as a parameter",
)
SPLIT = Cause(
    "tape of unknown size",
    Kind.LIMIT,
    "the reverse sweep needs a tape whose size is known only at run time",
    "a tape that crosses JAX is an array of fixed size",
    'ask for one function, which runs the forward sweep itself: mode="reverse" of je.ad.differentiate',
)
NO_LOOP = Cause(
    "nothing to checkpoint",
    Kind.LIMIT,
    "there is no loop to checkpoint: the reverse sweep needs nothing of any loop's iterations",
    "checkpoint= was asked for",
    "leave the option away",
)
NOT_CHECKPOINTED = Cause(
    "loop that cannot be checkpointed",
    Kind.LIMIT,
    "the loop cannot be checkpointed: {why}",
    "its state has to be saved, and its iterations to be run again; see [checkpointing](checkpointing.md)",
    "{remedy}, or give checkpoint=False, which keeps everything that the reverse sweep needs",
)
NEVER_RETURNS = Cause(
    "function that never returns",
    Kind.NOT_DIFFERENTIABLE,
    "the kernel never returns",
    "there is nothing to differentiate",
    "make sure that the function ends for some arguments",
)
INACTIVE_PARAMETER = Cause(
    "inactive parameter",
    Kind.LIMIT,
    "parameter {number} of `{name}` leads to memory with derivatives",
    "the caller of `je.ad.differentiate` gives memory for derivatives where activity says so",
    "make it active: it needs memory for them beside it",
)
POINTER_PARAMETER = Cause(
    "parameter with pointers",
    Kind.LIMIT,
    "parameter {number} of `{name}` leads to memory that holds pointers",
    "their shadows would be somebody else's to make (`je.ad.differentiate`)",
    "pass the memory that they lead to as parameters of its own",
)
RETURNED_POINTER = Cause(
    "pointer as a result",
    Kind.LIMIT,
    "`{name}` returns a pointer to memory with derivatives that is no parameter",
    "the memory for its derivatives would be lost (`je.ad.differentiate`)",
    "write to memory that is passed as a parameter",
)
CALLERS_VARIABLE = Cause(
    "file-scope variable of a program",
    Kind.LIMIT,
    "the file-scope variable `{name}` may hold, or share, memory with derivatives",
    "the program around the function (`je.ad.differentiate`) may have put any pointer there, or one to the variable "
    "elsewhere, and has no memory for derivatives beside it",
    "pass the memory as a parameter",
)

UNORDERED_SUM = Cause(
    "order of a sum",
    Kind.NOT_PROVABLE,
    "with Options(deterministic=True): threads add numbers to {names}, which {obstacle}",
    "such a sum is kept in integers, whose order does not matter, and all that reads or writes the place has to know",
    "add to an array that is only added to, read and stored to number by number; store to it number by number",
)
ORDERED_RESULT = Cause(
    "result that depends on an order",
    Kind.NOT_PROVABLE,
    "with Options(deterministic=True): what it returns depends on the order of threads",
    "that order is another one each time the kernel runs",
    "add atomically, and read afterwards, behind a barrier or in another kernel",
)
THREAD_CHECKPOINT = Cause(
    "checkpoints of a thread",
    Kind.LIMIT,
    "checkpoint={wanted!r} was asked for, and reverse mode of a thread of a device keeps what its loops need",
    "segments that run again are functions with memory of their own, which a thread does not have",
    'leave the option away for devices: kernel.on("cuda", the same without it)',
)
SHARED_ORDER = Cause(
    "order of threads",
    Kind.NOT_PROVABLE,
    "what an atomic operation returns, or replaces, depends on the order of threads, and a derivative depends on it",
    "that order is another one each time the kernel runs, and unknown on the way back",
    "add atomically, and read afterwards",
)
SHARED_STRUCTURE = Cause(
    "structure in shared memory",
    Kind.LIMIT,
    "a structure is loaded as a whole from memory that other threads may read as well",
    "cotangents of memory that several threads read are added atomically, number by number",
    "load the members one by one",
)
SHARED_COPY = Cause(
    "copy of shared memory",
    Kind.LIMIT,
    "a copy of memory that other threads may read as well, on which a derivative depends",
    "cotangents of memory that several threads read are added atomically, number by number",
    "copy the members one by one",
)

_STAY = "let all threads of a block stay to its end: `if (i < n) {{ ... }}` around what is theirs, barriers outside"
LEAVES_BLOCK = Cause(
    "thread that leaves early",
    Kind.NOT_PROVABLE,
    "a thread does this and then leaves, while others of its block go on to a barrier",
    "in reverse it would do this at once, before the others have reversed what they did with it behind the barrier",
    _STAY,
)
LEAVES_WARP = Cause(
    "lane that leaves early",
    Kind.NOT_PROVABLE,
    "a lane may leave after it, while others of its warp go on to other warp operations",
    "in reverse it would meet the others at another operation than theirs",
    _STAY,
)
BLOCKS_EXCHANGE = Cause(
    "blocks that wait for each other",
    Kind.NOT_PROVABLE,
    "blocks pass on numbers through {names} as they run, and a derivative depends on them",
    "nothing makes blocks run in reverse in the opposite order",
    "make two kernels of it: all blocks finish the first one",
)
PART_OF_BLOCK = Cause(
    "barrier of a part of a block",
    Kind.NOT_PROVABLE,
    "threads meet at `{name}`, and a derivative depends on what they exchange in shared memory",
    "which of them come to it is not known, and in reverse they have to meet again",
    "let the whole block meet: __syncthreads()",
)
COUNTED_BUFFER = Cause(
    "loop that the kernel's own results end",
    Kind.LIMIT,
    "how often a loop runs depends on what the kernel itself writes to {name}, and reverse mode keeps numbers of each "
    "iteration",
    "the iterations are counted before the kernel runs, to know how much memory that takes",
    "decide by inputs, local variables or shared memory, or bound the loop by a dimension: "
    "`for (i = 0; i < n && more; i++)`",
)
COUNTED_ORDER = Cause(
    "loop that the order of threads ends",
    Kind.NOT_PROVABLE,
    "how often a loop runs depends on what an atomic operation returns, and reverse mode keeps numbers of each "
    "iteration",
    "that is another number each time the kernel runs",
    "give every thread its own part of the work, by its number",
)
COUNTED_TWICE = Cause(
    "reverse of a reverse that counts",
    Kind.LIMIT,
    "it is the reverse of a kernel with loops of unknown length, which keeps a tape of its own",
    "the tape of one derivative has no size when the other one's is counted",
    "differentiate the reverse forward, as JAX does: jax.jvp of jax.vjp, jax.hessian",
)
THREAD_RECURSION = Cause(
    "recursion in a thread",
    Kind.LIMIT,
    "{names} could not be inlined: a recursive function has no reverse on a device",
    "a device has no memory for a tape of unknown size",
    "write the recursion as a loop",
)
THREAD_POINTERS = Cause(
    "pointers that a thread keeps",
    Kind.LIMIT,
    "reverse mode would have to keep pointers that a thread computes",
    "a tape crosses from one call of JAX to another, and holds no pointers",
    "index arrays by integers instead of changing pointers",
)
STATE = Cause(
    "device variable",
    Kind.NOT_DIFFERENTIABLE,
    "the device variable `{name}` holds numbers that a derivative depends on",
    "it keeps them from launch to launch, so that what a launch computes depends on those before",
    "pass it as a parameter",
)

DEFECT = Cause(
    "defect",
    Kind.LIMIT,
    "the canonical form of the kernel is not what the engine expects: {what}",
    "no program should come to this",
    "this is a defect of jax_enzyme: please report it with the source of the kernel",
)

CAUSES = (
    UNKNOWN_CALL, COMMUNICATION, UNKNOWN_POINTER_CALL, ASSEMBLY, BITS, HELD, MADE, PARTS, GOTO, SETJMP,
    VARIADIC, THROUGH_FILE, CHANGED_FILE, DRAWN_NUMBER,
    VOLATILE, DEVICE, ORIGIN, POINTERS_AS_INTEGERS, MIXED_COPY, IN_ONE_PLACE, ALLOCATOR, SPLIT,
    NO_LOOP, NOT_CHECKPOINTED, NEVER_RETURNS, INACTIVE_PARAMETER, POINTER_PARAMETER, CALLERS_VARIABLE,
    RETURNED_POINTER,
)  # fmt: skip
"""Those of functions that one thread runs, in the order of the page."""

GUARDS = (NARROW, RELOADED, REALLOCATED, GLOBAL, ATOMIC, DEFECT)
"""What no program is known to come to: other causes, or rewriting, are in front of them."""

DEVICE_CAUSES = (
    LEAVES_BLOCK, LEAVES_WARP, BLOCKS_EXCHANGE, PART_OF_BLOCK, COUNTED_BUFFER, COUNTED_ORDER, COUNTED_TWICE,
    THREAD_RECURSION, THREAD_POINTERS, THREAD_CHECKPOINT, STATE, UNORDERED_SUM, ORDERED_RESULT,
    SHARED_ORDER, SHARED_STRUCTURE, SHARED_COPY,
)  # fmt: skip
"""Those of CUDA kernels besides."""
