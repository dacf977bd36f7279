"""The routines of BLAS and LAPACK whose derivatives the package has, and what each does to its arguments.

A rule is C code in this folder (`support.h` tells the convention); this table is what analyses read, and the page of
documentation is made of it.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator, Mapping

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T

PREFIX = "je_"


class Kind(enum.Enum):
    """What a pointer argument points to."""

    FLAG = "c"
    INTEGER = "i"
    INTEGERS = "I"
    REAL = "r"
    """One real number, also where the routine's other numbers are complex."""
    REALS = "R"
    NUMBER = "f"
    NUMBERS = "F"


class Result(enum.Enum):
    NOTHING = "nothing"
    NUMBER = "number"
    INTEGER = "integer"


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Kind
    reads: bool = True
    writes: bool = False

    @property
    def is_float(self) -> bool:
        """Does it point to floating-point numbers, so that it has a shadow?"""
        return self.kind in (Kind.REAL, Kind.REALS, Kind.NUMBER, Kind.NUMBERS)


@dataclass(frozen=True)
class Routine:
    """One routine for one kind of numbers: `gemm` is `dgemm_` in object code. All parameters are pointers, and what
    they point to is read or written during the call only; `reads` and `writes` say what may happen."""

    name: str
    symbol: str
    parameters: tuple[Parameter, ...]
    result: Result
    scalar: T.FloatType
    is_complex: bool

    @property
    def stem(self) -> str:
        return self.symbol.removesuffix("_")

    @property
    def letter(self) -> str:
        """s, d, c or z: which numbers it is about."""
        return ("cz" if self.is_complex else "sd")[self.scalar == T.DOUBLE]

    @property
    def is_active(self) -> bool:
        """Has it a derivative? (`idamax_` has none: its result is an integer.)"""
        return self.result is Result.NUMBER or any(p.is_float and p.writes for p in self.parameters)

    @property
    def communicates(self) -> bool:
        """Whether numbers pass between it and other processes: its outputs vary, and its inputs are of use, whatever
        this process does with them."""
        return False

    @property
    def jvp(self) -> str:
        return f"{PREFIX}{self.stem}_jvp"

    @property
    def forward(self) -> str:
        return f"{PREFIX}{self.stem}_forward"

    @property
    def reverse(self) -> str:
        return f"{PREFIX}{self.stem}_reverse"

    @property
    def floats(self) -> tuple[int, ...]:
        """The positions of the parameters that have shadows; bit k of `stable` is about the k-th of these."""
        return tuple(i for i, p in enumerate(self.parameters) if p.is_float)

    def reads(self, index: int) -> bool:
        return index < len(self.parameters) and self.parameters[index].reads

    def writes(self, index: int) -> bool:
        return index < len(self.parameters) and self.parameters[index].writes

    def accepts(self, signature: T.FunctionType) -> bool:
        """Can a function declared like this be the routine? Lengths of character arguments may follow the parameters,
        and what returns nothing is often declared `int`."""
        count = len(self.parameters)
        given = signature.parameters
        if len(given) < count and not signature.variadic:
            return False
        if not all(T.is_pointer(t) for t in given[:count]) or not all(T.is_int(t) for t in given[count:]):
            return False
        if self.result is Result.NUMBER:
            return signature.result == self.scalar
        return isinstance(signature.result, T.VoidType) or T.is_int(signature.result)


_X = "x:F incx:i"
_Y = "y:F incy:i"
_TRIANGLE = "uplo:c trans:c diag:c"
_SUBSET = "jobz:c range:c uplo:c n:i a:F+ lda:i vl:r vu:r il:i iu:i abstol:r m:i= w:R= z:F= ldz:i"
_REFLECTED = "side:c trans:c m:i n:i k:i a:F lda:i tau:F c:F+ ldc:i work:F= lwork:i info:i="
_BOTH_SIDES = "vl:F= ldvl:i vr:F= ldvr:i work:F="
_MATRICES = "n:i nrhs:i a:F+ lda:i af:F+ ldaf:i"
_ESTIMATES = "b:F+ ldb:i x:F= ldx:i rcond:r= ferr:R= berr:R= work:F="
_SINGULAR = "a:F+ lda:i s:R= u:F= ldu:i vt:F= ldvt:i work:F= lwork:i"

# name, kinds of numbers, result, parameters: `name:kind`, then `=` if written only, `+` if read and written.
_ROWS = f"""
dot    s,d number  | n:i {_X} {_Y}
axpy   s,d,c,z nothing | n:i alpha:f {_X} y:F+ incy:i
scal   s,d,c,z nothing | n:i alpha:f x:F+ incx:i
copy   s,d,c,z nothing | n:i {_X} y:F= incy:i
swap   s,d,c,z nothing | n:i x:F+ incx:i y:F+ incy:i
nrm2   s,d number  | n:i {_X}
asum   s,d number  | n:i {_X}
rot    s,d nothing | n:i x:F+ incx:i y:F+ incy:i c:f s:f
gemv   s,d,c,z nothing | trans:c m:i n:i alpha:f a:F lda:i {_X} beta:f y:F+ incy:i
ger    s,d nothing | m:i n:i alpha:f {_X} {_Y} a:F+ lda:i
symv   s,d nothing | uplo:c n:i alpha:f a:F lda:i {_X} beta:f y:F+ incy:i
trmv   s,d,c,z nothing | {_TRIANGLE} n:i a:F lda:i x:F+ incx:i
trsv   s,d,c,z nothing | {_TRIANGLE} n:i a:F lda:i x:F+ incx:i
gemm   s,d,c,z nothing | transa:c transb:c m:i n:i k:i alpha:f a:F lda:i b:F ldb:i beta:f c:F+ ldc:i
symm   s,d,c,z nothing | side:c uplo:c m:i n:i alpha:f a:F lda:i b:F ldb:i beta:f c:F+ ldc:i
syrk   s,d,c,z nothing | uplo:c trans:c n:i k:i alpha:f a:F lda:i beta:f c:F+ ldc:i
syr2k  s,d,c,z nothing | uplo:c trans:c n:i k:i alpha:f a:F lda:i b:F ldb:i beta:f c:F+ ldc:i
trmm   s,d,c,z nothing | side:c {_TRIANGLE} m:i n:i alpha:f a:F lda:i b:F+ ldb:i
trsm   s,d,c,z nothing | side:c {_TRIANGLE} m:i n:i alpha:f a:F lda:i b:F+ ldb:i
amax   s,d,c,z integer | n:i {_X}
potrf  s,d,c,z nothing | uplo:c n:i a:F+ lda:i info:i=
potrs  s,d,c,z nothing | uplo:c n:i nrhs:i a:F lda:i b:F+ ldb:i info:i=
getrf  s,d,c,z nothing | m:i n:i a:F+ lda:i ipiv:I= info:i=
getrs  s,d,c,z nothing | trans:c n:i nrhs:i a:F lda:i ipiv:I b:F+ ldb:i info:i=
gesv   s,d,c,z nothing | n:i nrhs:i a:F+ lda:i ipiv:I= b:F+ ldb:i info:i=
gesvx  s,d nothing | fact:c trans:c {_MATRICES} ipiv:I+ equed:c+ r:R+ c:R+ {_ESTIMATES} iwork:I= info:i=
gesvx  c,z nothing | fact:c trans:c {_MATRICES} ipiv:I+ equed:c+ r:R+ c:R+ {_ESTIMATES} rwork:R= info:i=
posvx  s,d nothing | fact:c uplo:c {_MATRICES} equed:c+ s:R+ {_ESTIMATES} iwork:I= info:i=
posvx  c,z nothing | fact:c uplo:c {_MATRICES} equed:c+ s:R+ {_ESTIMATES} rwork:R= info:i=
trtrs  s,d,c,z nothing | {_TRIANGLE} n:i nrhs:i a:F lda:i b:F+ ldb:i info:i=
laswp  s,d,c,z nothing | n:i a:F+ lda:i k1:i k2:i ipiv:I incx:i
gbtrf  s,d,c,z nothing | m:i n:i kl:i ku:i a:F+ lda:i ipiv:I= info:i=
gbtrs  s,d,c,z nothing | trans:c n:i kl:i ku:i nrhs:i a:F lda:i ipiv:I b:F+ ldb:i info:i=
pbtrf  s,d,c,z nothing | uplo:c n:i kd:i a:F+ lda:i info:i=
pbtrs  s,d,c,z nothing | uplo:c n:i kd:i nrhs:i a:F lda:i b:F+ ldb:i info:i=
geqrf  s,d,c,z nothing | m:i n:i a:F+ lda:i tau:F= work:F= lwork:i info:i=
geqp3  s,d nothing | m:i n:i a:F+ lda:i jpvt:I+ tau:F= work:F= lwork:i info:i=
geqp3  c,z nothing | m:i n:i a:F+ lda:i jpvt:I+ tau:F= work:F= lwork:i rwork:R= info:i=
ormqr  s,d nothing | {_REFLECTED}
unmqr  c,z nothing | {_REFLECTED}
syev   s,d nothing | jobz:c uplo:c n:i a:F+ lda:i w:F= work:F= lwork:i info:i=
syevd  s,d nothing | jobz:c uplo:c n:i a:F+ lda:i w:F= work:F= lwork:i iwork:I= liwork:i info:i=
heev   c,z nothing | jobz:c uplo:c n:i a:F+ lda:i w:R= work:F= lwork:i rwork:R= info:i=
heevd  c,z nothing | jobz:c uplo:c n:i a:F+ lda:i w:R= work:F= lwork:i rwork:R= lrwork:i iwork:I= liwork:i info:i=
syevr  s,d nothing | {_SUBSET} isuppz:I= work:F= lwork:i iwork:I= liwork:i info:i=
syevx  s,d nothing | {_SUBSET} work:F= lwork:i iwork:I= ifail:I= info:i=
heevr  c,z nothing | {_SUBSET} isuppz:I= work:F= lwork:i rwork:R= lrwork:i iwork:I= liwork:i info:i=
heevx  c,z nothing | {_SUBSET} work:F= lwork:i rwork:R= iwork:I= ifail:I= info:i=
geev   s,d nothing | jobvl:c jobvr:c n:i a:F+ lda:i w:F= wi:F= {_BOTH_SIDES} lwork:i info:i=
geev   c,z nothing | jobvl:c jobvr:c n:i a:F+ lda:i w:F= {_BOTH_SIDES} lwork:i rwork:R= info:i=
gesvd  s,d nothing | jobu:c jobvt:c m:i n:i {_SINGULAR} info:i=
gesvd  c,z nothing | jobu:c jobvt:c m:i n:i {_SINGULAR} rwork:R= info:i=
gesdd  s,d nothing | jobz:c m:i n:i {_SINGULAR} iwork:I= info:i=
gesdd  c,z nothing | jobz:c m:i n:i {_SINGULAR} rwork:R= iwork:I= info:i=
scal   cs,zd nothing | n:i alpha:r x:F+ incx:i
rot    cs,zd nothing | n:i x:F+ incx:i y:F+ incy:i c:r s:r
nrm2   sc,dz number  | n:i {_X}
asum   sc,dz number  | n:i {_X}
geru   c,z nothing | m:i n:i alpha:f {_X} {_Y} a:F+ lda:i
gerc   c,z nothing | m:i n:i alpha:f {_X} {_Y} a:F+ lda:i
hemv   c,z nothing | uplo:c n:i alpha:f a:F lda:i {_X} beta:f y:F+ incy:i
hemm   c,z nothing | side:c uplo:c m:i n:i alpha:f a:F lda:i b:F ldb:i beta:f c:F+ ldc:i
herk   c,z nothing | uplo:c trans:c n:i k:i alpha:r a:F lda:i beta:r c:F+ ldc:i
her2k  c,z nothing | uplo:c trans:c n:i k:i alpha:f a:F lda:i b:F ldb:i beta:r c:F+ ldc:i
"""

# Routines that the library defines by calling others: the C interface, what returns a complex number, and what is a
# special case. Letters of numbers, a pattern with `?` for the letter and `*` for the name, names.
_BODIES = """
sd   cblas_?*  dot nrm2 asum rot ger symv syr syr2
sd   cblas_?*  gbmv sbmv spmv spr spr2 tbmv tbsv tpmv tpsv
sdcz cblas_?*  axpy scal copy swap gemv trmv trsv gemm symm syrk syr2k trmm trsm
cz   cblas_?*  dotu_sub dotc_sub geru gerc hemv hemm herk her2k her her2
c    cblas_?s* scal rot
z    cblas_?d* scal rot
c    cblas_s?* nrm2 asum
z    cblas_d?* nrm2 asum
sdcz cblas_i?* amax
s    cblas_*   dsdot sdsdot
s    *         dsdot_ sdsdot_
sd   ?*        syr_ syr2_
cz   ?*        dotu_ dotc_ her_ her2_ gemm3m_
sdcz ?*        posv_ pbsv_ gbsv_ gttrf_ gttrs_ gtsv_ pttrf_ pttrs_ ptsv_
sdcz ?*        gbmv_ tbmv_ tbsv_ tpmv_ tpsv_ getri_ potri_ trtri_
sdcz ?*        tbtrs_ tptrs_ pptrf_ pptrs_ ppsv_ gelqf_ gels_ gelss_ gelsd_ gelsy_ gglse_
sdcz ?*        sytrf_ sytrs_ sysv_ sytri_ sptrf_ sptrs_ spsv_ sptri_
cz   ?*        hetrf_ hetrs_ hesv_ hetri_ hptrf_ hptrs_ hpsv_ hptri_
sdcz ?*        lange_ lansy_ lantr_ gecon_ pocon_ trcon_ geequ_ poequ_ lacpy_ laset_
sd   ?*        sbmv_ spmv_ spr_ spr2_ orgqr_ ormlq_ orglq_ sygv_
cz   ?*        hbmv_ hpmv_ ungqr_ unmlq_ unglq_ lanhe_ hpev_
sd   ?*        larfg_ larfgp_ larf_ spev_ stev_ stevd_ sterf_ steqr_
"""


@functools.cache
def bodies() -> Mapping[str, str]:
    """The functions that are not differentiated by a rule but as code, which the library has (`cblas_dgemm`), and the
    letter of the numbers that they are about."""
    found: dict[str, str] = {}
    for line in _BODIES.strip().splitlines():
        letters, pattern, *names = line.split()
        for letter in letters:
            found.update((pattern.replace("?", letter).replace("*", name), letter) for name in names)
    return found


@functools.cache
def routines() -> Mapping[str, Routine]:
    """All routines by symbol (`dgemm_`)."""
    return {routine.symbol: routine for routine in _parsed()}


def routine(symbol: str, signature: T.FunctionType | None = None) -> Routine | None:
    """The routine of that symbol, or None. With `signature`, a function that merely has its name is none."""
    found = routines().get(symbol)
    return None if found is None or (signature is not None and not found.accepts(signature)) else found


def _parsed() -> Iterator[Routine]:
    for line in _ROWS.strip().splitlines():
        head, _, tail = line.partition("|")
        name, letters, result = head.split()
        parameters = tuple(_parameter(text) for text in tail.split())
        for letter in letters.split(","):
            prefix = f"i{letter}" if result == "integer" else letter
            scalar = T.FLOAT if letter[0] in "sc" else T.DOUBLE
            is_complex = "c" in letter or "z" in letter
            yield Routine(name, f"{prefix}{name}_", parameters, Result(result), scalar, is_complex)


def _parameter(text: str) -> Parameter:
    name, _, kind = text.partition(":")
    return Parameter(name, Kind(kind[0]), reads=not kind.endswith("="), writes=kind[-1] in "=+")
