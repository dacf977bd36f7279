"""What a called function does besides, or instead of, computing a floating-point number.

`effect(name)` answers for functions that the engine treats by what they do to memory and control; for all others it is
None, and if there is no rule either, the call is unknown.
"""

from __future__ import annotations

import enum
import functools
import re

DISTANCES_AGREE = "je.distances.agree"
NUMBERS_WHOLE = "je.numbers.whole"
NUMBERS_KNOWN = "je.numbers.known"
"""Where these are false a derivative cannot go on: see `transform.derivative_checks`."""
OF_ITS_KIND = "je.of_its_kind."
_INTEGERS_OF_THEIR_KIND = " ".join(f"{OF_ITS_KIND}i{bits}" for bits in (8, 16, 32, 64))
KINDS = tuple(f"je.kinds.{name}" for name in ("put", "copy", "is", "integer", "number"))
"""What keeps, and tells, which kind of number lies where: see `transform.number_kinds`."""
SECTION = "je.section"
"""The number that it is given, which no optimiser sees: see `transform.openmp.sections`."""
NUMBER_LENGTH = "je.number_length"
"""How many bytes of a text are the number that it begins with, as `strtod` reads it."""


class Effect(enum.Enum):
    PURE_INT = "computes an integer or a pointer; reads memory at most, and no floating-point number from it"
    IGNORED = "tells the optimiser or the debugger something; may be dropped"
    SAME_POINTER = "returns a pointer into the memory that its first argument points to"
    MEMORY_COPY = "copies bytes: (destination, source, count)"
    MEMORY_SET = "fills bytes with one byte: (destination, byte, count)"
    STACK = "saves or restores the stack pointer"
    ALLOCATE = "returns new memory"
    REALLOCATE = "moves memory to a new size"
    FREE = "gives memory back: (pointer, ...)"
    TAPE = "measures or frees memory of the arena that a derivative has its tape in"
    OUTPUT = "prints; not differentiated, and done by the primal alone"
    ABORT = "never returns: ends the program"
    TRAP = "never returns: stops at a fault"
    THROW = "throws, catches or ends a C++ exception, or a Rust panic"
    MASKED_LOAD = "loads lanes of a vector under a mask"
    MASKED_STORE = "stores lanes of a vector under a mask"
    GATHER = "loads lanes of a vector through a vector of pointers"
    SCATTER = "stores lanes of a vector through a vector of pointers"
    VECTOR_REDUCE = "reduces the lanes of a floating-point vector to a scalar"
    READ_CLOCK = "reads a clock, an environment, a random source or where a file is: an inactive number"
    BARRIER = "waits for the other threads of a block or a warp"
    FENCE = "orders what this thread does to memory, as other threads see it"
    VOTE = "waits for the other threads of a block or a warp, and returns an integer that they have agreed on"
    SHUFFLE = "returns the value of another lane of the warp, or the sum of all: (mask of lanes, value, lane)"


_INTRINSICS: dict[Effect, str] = {
    Effect.IGNORED: (
        "lifetime.start lifetime.end assume dbg.declare dbg.value dbg.assign dbg.label donothing sideeffect "
        "experimental.noalias.scope.decl prefetch invariant.start invariant.end var.annotation annotation "
        "pseudoprobe codeview.annotation fake.use"
    ),
    Effect.PURE_INT: (
        "expect expect.with.probability ctpop ctlz cttz bswap bitreverse fshl fshr abs smax smin umax umin "
        "scmp ucmp sadd.sat uadd.sat ssub.sat usub.sat sshl.sat ushl.sat sadd.with.overflow "
        "uadd.with.overflow ssub.with.overflow usub.with.overflow smul.with.overflow umul.with.overflow "
        "objectsize is.constant vscale "
        "get.active.lane.mask stepvector returnaddress frameaddress allow.runtime.check allow.ubsan.check "
        "vector.reduce.add vector.reduce.mul vector.reduce.and vector.reduce.or "
        "vector.reduce.xor vector.reduce.smax vector.reduce.smin vector.reduce.umax vector.reduce.umin "
        "get.rounding eh.typeid.for type.test public.type.test smul.fix umul.fix "
        "nvvm.read.ptx.sreg.laneid nvvm.read.ptx.sreg.warpid nvvm.read.ptx.sreg.tid.x nvvm.read.ptx.sreg.tid.y "
        "nvvm.read.ptx.sreg.tid.z nvvm.read.ptx.sreg.ctaid.x nvvm.read.ptx.sreg.ctaid.y nvvm.read.ptx.sreg.ctaid.z"
    ),
    Effect.SAME_POINTER: "ptrmask launder.invariant.group strip.invariant.group ptr.annotation threadlocal.address",
    Effect.MEMORY_COPY: "memcpy memcpy.inline memmove",
    Effect.MEMORY_SET: "memset memset.inline",
    Effect.STACK: "stacksave stackrestore",
    Effect.TRAP: "trap ubsantrap debugtrap",
    Effect.MASKED_LOAD: "masked.load masked.expandload",
    Effect.MASKED_STORE: "masked.store masked.compressstore",
    Effect.GATHER: "masked.gather",
    Effect.SCATTER: "masked.scatter",
    Effect.VECTOR_REDUCE: (
        "vector.reduce.fadd vector.reduce.fmul vector.reduce.fmax vector.reduce.fmin vector.reduce.fmaximum "
        "vector.reduce.fminimum"
    ),
    Effect.READ_CLOCK: "readcyclecounter readsteadycounter",
    Effect.BARRIER: "nvvm.barrier.cta.sync.aligned.all nvvm.barrier.cta.sync.all nvvm.barrier0 nvvm.bar.warp.sync",
    Effect.FENCE: "nvvm.membar.cta nvvm.membar.gl nvvm.membar.sys",
    Effect.VOTE: (
        "nvvm.barrier.cta.red.popc.aligned.all nvvm.barrier.cta.red.and.aligned.all "
        "nvvm.barrier.cta.red.or.aligned.all nvvm.barrier0.popc nvvm.barrier0.and nvvm.barrier0.or "
        "nvvm.vote.ballot.sync nvvm.vote.any.sync nvvm.vote.all.sync"
    ),
}

_FUNCTIONS: dict[Effect, str] = {
    Effect.IGNORED: "feraiseexcept feclearexcept _FortranAferaiseexcept",
    Effect.PURE_INT: (
        "abs labs llabs imaxabs div ldiv lldiv imaxdiv strlen strnlen strcmp strncmp strcasecmp strncasecmp memcmp "
        "memchr strchr strrchr strstr strspn strcspn isalpha isdigit isspace isupper islower isalnum isxdigit "
        "ispunct isprint tolower toupper __ctype_b_loc __errno_location ffs ffsl ffsll __cxa_guard_acquire "
        "__cxa_guard_release malloc_usable_size omp_get_thread_num omp_get_num_threads omp_get_max_threads "
        "pthread_self _FortranAMapException bcmp __je_lane "
        f"{DISTANCES_AGREE} {NUMBERS_WHOLE} {NUMBERS_KNOWN} {SECTION} {NUMBER_LENGTH} "
        f"{' '.join(KINDS)} {_INTEGERS_OF_THEIR_KIND}"
    ),
    Effect.MEMORY_COPY: "memcpy memmove __memcpy_chk __memmove_chk",
    Effect.MEMORY_SET: "memset __memset_chk",
    Effect.ALLOCATE: (
        "malloc calloc aligned_alloc memalign valloc _Znwm _Znam _ZnwmSt11align_val_t _ZnamSt11align_val_t "
        "_ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t _ZnwmSt11align_val_tRKSt9nothrow_t "
        "_ZnamSt11align_val_tRKSt9nothrow_t __rust_alloc __rust_alloc_zeroed je.arena.allocate je_arena_allocate"
    ),
    Effect.TAPE: "je.arena.reset je.arena.used je.arena.release je.arena.join",
    Effect.REALLOCATE: "realloc reallocarray __rust_realloc",
    Effect.FREE: (
        "free cfree _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t "
        "_ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t "
        "__rust_dealloc"
    ),
    Effect.OUTPUT: (
        "printf fprintf vprintf vfprintf dprintf puts putchar putc fputc fputs fwrite fflush perror "
        "__printf_chk __fprintf_chk __vprintf_chk __vfprintf_chk fputc_unlocked putchar_unlocked "
        "write setbuf setvbuf"
    ),
    Effect.ABORT: (
        "abort exit _exit _Exit quick_exit __assert_fail __assert_rtn __assert __stack_chk_fail __chk_fail "
        "_ZSt9terminatev __cxa_pure_virtual __cxa_deleted_virtual __fortify_fail __clang_call_terminate "
        "_FortranAStopStatement _FortranAStopStatementText _FortranAErrorStop _FortranAReportFatalUserError "
        "_FortranAAbort _FortranAExit _FortranAProgramEndStatement __assertfail longjmp MPI_Abort"
    ),
    Effect.THROW: (
        "__cxa_throw __cxa_rethrow __cxa_allocate_exception __cxa_free_exception __cxa_begin_catch "
        "__cxa_end_catch __cxa_get_exception_ptr _Unwind_Resume __cxa_bad_cast __cxa_bad_typeid "
        "__cxa_throw_bad_array_new_length rust_begin_unwind __rust_start_panic"
    ),
    Effect.READ_CLOCK: (
        "clock time gettimeofday clock_gettime getenv rand srand random drand48 omp_get_wtime sysconf "
        "MPI_Wtime MPI_Wtick fopen fopen64 fclose rewind fseek fseeko ftell ftello feof ferror clearerr fileno"
    ),
    Effect.BARRIER: "__je_warp_sync",
    Effect.VOTE: "__je_barrier_count __je_barrier_and __je_barrier_or __je_ballot __je_any __je_all __je_active_mask",
    Effect.SHUFFLE: "__je_shuffle_i32 __je_shuffle_i64 __je_shuffle_f32 __je_shuffle_f64 "
    "__je_shuffle_sum_f32 __je_shuffle_sum_f64",
}

_PATTERNS: tuple[tuple[re.Pattern[str], Effect], ...] = tuple(
    (re.compile(pattern), effect)
    for pattern, effect in (
        # Input, and output into a variable of the program, are more than output.
        (
            r"_FortranAio(Output\w+|Begin(External|Unformatted)\w*Output|EndIoStatement|Set\w+|BeginFlush)",
            Effect.OUTPUT,
        ),
        (r"_FortranA(CpuTime|SystemClock\w+)$", Effect.READ_CLOCK),
        (r"_(R|ZN)\w*3std2io5stdio\d+_{1,2}e?print", Effect.OUTPUT),
        (r"_ZSt\d+__throw_", Effect.THROW),
        (r"_ZNSt3__1\d+__throw_", Effect.THROW),
        (r"_ZNSt3__1\d+__hash_memoryE", Effect.PURE_INT),
        (r"_ZNSt9exceptionD[12]Ev$", Effect.IGNORED),  # of the base of all exceptions, which holds nothing
        (r"_ZN4core9panicking", Effect.THROW),
        (r"_ZN4core\d+option\d+(unwrap|expect)_failed", Effect.THROW),
        (r"_ZN4core\d+result\d+unwrap_failed", Effect.THROW),
        (r"_ZN5alloc\d+raw_vec\d+(handle_error|capacity_overflow)", Effect.THROW),
        (r"_ZN5alloc\d+alloc\d+handle_alloc_error", Effect.THROW),
        (r"debug\.(FullPanic\(|defaultPanic$)", Effect.ABORT),
        (r"_R.*___rust_alloc_zeroed$", Effect.ALLOCATE),
        (r"_R.*___rust_alloc$", Effect.ALLOCATE),
        (r"_R.*___rust_dealloc$", Effect.FREE),
        (r"_R.*___rust_realloc$", Effect.REALLOCATE),
        (r"_R.*___rust_no_alloc_shim_is_unstable", Effect.IGNORED),
        # Waiting for a lock, and waking who waits: one thread runs a kernel, and finds its locks free.
        (
            r"_(R|ZN)\w*3sys4sync(5mutex|6rwlock)\w*"
            r"(14lock_contended|14read_contended|15write_contended|4wake|22wake_writer_or_readers)",
            Effect.IGNORED,
        ),
        (r"_(R|ZN)\w*11panic_count17is_zero_slow_path", Effect.PURE_INT),
    )
)

_WRITE_TEXT = frozenset(
    "snprintf sprintf vsnprintf vsprintf __snprintf_chk __sprintf_chk __vsnprintf_chk __vsprintf_chk".split()
)

_LIBRARY = re.compile(r"_ZN?K?S[tosi]|__cxa_")
_ALONE = frozenset(
    "fopen fclose fread fgets fgetc fscanf scanf sscanf rewind fseek ftell feof ferror remove rename strtod strtof"
    " strtol strtoul strtoll atof atoi atol strcpy strncpy strcat strncat strdup strtok localtime gmtime strftime"
    " setlocale pthread_mutex_lock pthread_mutex_unlock pthread_mutex_init pthread_mutex_destroy".split()
)

_OVERLOADS = re.compile(r"(\.(nx)?(v\d+)?(p\d+|[if]\d+|bf16|sl_\w+s))+$")

_SIZES = {
    "calloc": (0, 1), "aligned_alloc": (1,), "memalign": (1,), "realloc": (1,), "reallocarray": (1, 2),
    "je.arena.allocate": (1,), "je_arena_allocate": (1,),
}  # fmt: skip
"""Where an allocator has them in other places than the first."""


@functools.cache
def _tables() -> tuple[dict[str, Effect], dict[str, Effect]]:
    def inverted(table: dict[Effect, str]) -> dict[str, Effect]:
        return {name: effect for effect, names in table.items() for name in names.split()}

    return inverted(_INTRINSICS), inverted(_FUNCTIONS)


@functools.cache
def effect(name: str) -> Effect | None:
    """What a call of `name` does, or None where this table does not know it."""
    intrinsics, functions = _tables()
    if name.startswith("llvm."):
        base = name.removeprefix("llvm.")
        return intrinsics.get(base) or intrinsics.get(_OVERLOADS.sub("", base))
    if found := functions.get(name):
        return found
    return next((effect for pattern, effect in _PATTERNS if pattern.match(name)), None)


def calls_nothing_back(name: str) -> bool:
    """Whether a function of C's or C++'s library calls what it is handed alone, and nothing that memory leads to: all
    but streams that the program derives of its own."""
    return name in _ALONE or _LIBRARY.match(name) is not None


def allocated(name: str) -> tuple[int, ...] | None:
    """The arguments of an allocator that multiplied are the bytes that it gives; None for other functions."""
    if effect(name) not in (Effect.ALLOCATE, Effect.REALLOCATE):
        return None
    return (3,) if name.endswith("rust_realloc") else _SIZES.get(name, (0,))


def known_names(effect: Effect) -> tuple[str, ...]:
    """The functions that have an effect by their names, for the documentation: intrinsics with `llvm.`, patterns as
    regular expressions."""
    intrinsics = (f"llvm.{name}" for name in _INTRINSICS.get(effect, "").split())
    functions = _FUNCTIONS.get(effect, "").split()
    patterns = (f"{pattern.pattern}" for pattern, found in _PATTERNS if found is effect)
    return (*intrinsics, *functions, *patterns)


def inert(name: str) -> bool:
    """Has a call of `name` neither a floating-point result nor an effect on memory or control?"""
    return effect(name) in (Effect.PURE_INT, Effect.IGNORED)


def writes_text(name: str) -> bool:
    """Does a call of `name` write characters into the memory that it is given, and keep no address of it?"""
    return name in _WRITE_TEXT
