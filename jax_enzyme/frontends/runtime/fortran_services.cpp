// What old libraries keep in files of their own, and leave out where they are bundled: how errors are told, and the
// constants of the machine's arithmetic. In a kernel an error that ends a program ends the call.
// provides: xerbla_ xerror_ xermsg_ xerrwv_ lsame_ [dr]1mach_ i1mach_ [ds]lamch_
#include <cfloat>
#include <climits>
#include <cstdlib>

namespace {

char upper(char letter) { return letter >= 'a' && letter <= 'z' ? letter - 32 : letter; }

// LAPACK's dlamch: rounds to nearest.
template <class Real> Real lamch(char what, Real epsilon, Real smallest, Real largest, int digits, int low, int high) {
  switch (upper(what)) {
  case 'E': return epsilon / 2;
  case 'S': return smallest;
  case 'B': return 2;
  case 'P': return epsilon;
  case 'N': return digits;
  case 'R': return 1;
  case 'M': return low;
  case 'U': return smallest;
  case 'L': return high;
  case 'O': return largest;
  default: return 0;
  }
}

// PORT's and SLATEC's r1mach and d1mach.
template <class Real> Real mach(int number, Real epsilon, Real smallest, Real largest, Real log10_of_2) {
  switch (number) {
  case 1: return smallest;
  case 2: return largest;
  case 3: return epsilon / 2;
  case 4: return epsilon;
  case 5: return log10_of_2;
  default: std::abort();
  }
}

} // namespace

extern "C" {

[[noreturn]] void _FortranAReportFatalUserError(const char *, const char *, int);

[[noreturn]] void xerbla_(const char *, const int *, long) {
  _FortranAReportFatalUserError("an illegal argument for a routine of BLAS or LAPACK (xerbla)", nullptr, 0);
}

// Levels: -1 and 0 warn, 1 may be recovered from, 2 is fatal; old programs stop at 1 as well, unless told otherwise.
void xermsg_(const char *, const char *, const char *, const int *, const int *level, long, long, long) {
  if (*level > 0) std::abort();
}
void xerror_(const char *, const int *, const int *, const int *level, long) {
  if (*level > 0) std::abort();
}
void xerrwv_(const char *, const int *, const int *, const int *level, const int *, const int *, const int *,
             const int *, const double *, const double *, long) {
  if (*level > 1) std::abort();
}

int lsame_(const char *one, const char *other, long, long) { return upper(*one) == upper(*other); }

double d1mach_(const int *number) { return mach<double>(*number, DBL_EPSILON, DBL_MIN, DBL_MAX, 0.30102999566398120); }
float r1mach_(const int *number) { return mach<float>(*number, FLT_EPSILON, FLT_MIN, FLT_MAX, 0.30103001f); }

double dlamch_(const char *what, long) {
  return lamch<double>(*what, DBL_EPSILON, DBL_MIN, DBL_MAX, DBL_MANT_DIG, DBL_MIN_EXP, DBL_MAX_EXP);
}
float slamch_(const char *what, long) {
  return lamch<float>(*what, FLT_EPSILON, FLT_MIN, FLT_MAX, FLT_MANT_DIG, FLT_MIN_EXP, FLT_MAX_EXP);
}

int i1mach_(const int *number) {
  static const int values[] = {5,  6,          7,       6,          32,       4,           2,           31,
                               INT_MAX, FLT_RADIX, FLT_MANT_DIG, FLT_MIN_EXP, FLT_MAX_EXP, DBL_MANT_DIG, DBL_MIN_EXP,
                               DBL_MAX_EXP};
  if (*number < 1 || *number > 16) std::abort();
  return values[*number - 1];
}
}
