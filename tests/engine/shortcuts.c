// Work that is left out at exact values. What is in a function's name: see test_shortcuts.py.
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// y := alpha A x + beta y, as in reference BLAS
void gemv(int m, int n, double alpha, const double *a, const double *x, double beta, double *y) {
  if (alpha == 0.0 && beta == 1.0) return;
  if (beta != 1.0) {
    if (beta == 0.0)
      for (int i = 0; i < m; i++) y[i] = 0.0;
    else
      for (int i = 0; i < m; i++) y[i] = beta * y[i];
  }
  if (alpha == 0.0) return;
  for (int j = 0; j < n; j++) {
    if (x[j] != 0.0) {
      double t = alpha * x[j];
      for (int i = 0; i < m; i++) y[i] += t * a[i + j * m];
    }
  }
}

// A := A + alpha (x y' + y x'), the upper half
void syr2(int n, double alpha, const double *x, const double *y, double *a) {
  for (int j = 0; j < n; j++) {
    if (x[j] != 0.0 || y[j] != 0.0) {
      double s = alpha * y[j], t = alpha * x[j];
      for (int i = 0; i <= j; i++) a[i + j * n] += x[i] * s + y[i] * t;
    }
  }
}

// solves U x = b, from the last row
void trsv(int n, const double *u, double *x) {
  for (int j = n - 1; j >= 0; j--) {
    if (x[j] != 0.0) {
      x[j] /= u[j + j * n];
      double t = x[j];
      for (int i = j - 1; i >= 0; i--) x[i] -= t * u[i + j * n];
    }
  }
}

void trmv(int n, const double *u, double *x) {
  for (int j = 0; j < n; j++) {
    if (x[j] == 0.0) continue;
    double t = x[j];
    for (int i = 0; i < j; i++) x[i] += t * u[i + j * n];
    x[j] *= u[j + j * n];
  }
}

float csr(int n, int nz, const int *start, const int *column, const float *value, const float *x) {
  float sum = 0;
  for (int i = 0; i < n; i++) {
    float row = 0;
    for (int p = start[i]; p < start[i + 1]; p++) {
      if (value[p] == 0.0f) continue;
      row += value[p] * x[column[p]];
    }
    sum += row * row;
  }
  return sum;
}

double scaled(int n, double s, const double *x, double *y) {
  double sum = 0;
  for (int i = 0; i < n; i++) y[i] = sin(x[i]);
  if (s != 1.0)
    for (int i = 0; i < n; i++) y[i] *= s;
  for (int i = 0; i < n; i++) sum += y[i] * y[i];
  return sum;
}

double chosen(double x, double z) { return x == 0.0 ? z : z + sin(x) * z; }

// a Givens-like update with two numbers that are zero together
void rotated(int n, double re, double im, const double *x, double *y) {
  if (re == 0.0 && im == 0.0) return;
  for (int i = 0; i < n; i++) {
    double a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] += re * a - im * b;
    y[2 * i + 1] += re * b + im * a;
  }
}

// columns in a list of its own, as active sets are kept
double active_set(int n, int k, const int *set, const double *w, const double *g) {
  double work[16], dot = 0;
  for (int i = 0; i < n; i++) work[i] = g[i];
  for (int l = 0; l < k; l++) {
    double c = w[l];
    if (c == 0.0) continue;
    for (int i = 0; i < n; i++) work[i] -= c * g[set[l]] * (i + 1);
  }
  for (int i = 0; i < n; i++) dot += work[i] * work[i];
  return dot;
}

double unit(int n, const double *x) {
  double square = 0, sum = 0;
  for (int i = 0; i < n; i++) square += x[i] * x[i];
  double norm = sqrt(square);
  if (norm == 0.0) return 0.0;
  for (int i = 0; i < n; i++) sum += x[i] / norm;
  return sum;
}

double sinc(double x) { return x == 0.0 ? 1.0 : sin(x) / x; }

double entropy(int n, const double *p) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    if (p[i] == 0.0) continue;
    sum -= p[i] * log(p[i]);
  }
  return sum;
}

double rooted(double x) {
  if (x == 0.0) return 0.0;
  return sqrt(x);
}

double jump(int n, const double *x) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    if (x[i] != 0.0) sum += x[i] + 1.0;
  return sum;
}

// never ends where x is 0
double endless(double x) {
  if (x == 0.0) return 0.0;
  double t = 0;
  while (t * t < 1.0) t += x;
  return t - t;
}

// `out` memory is read by one side alone
void fresh(int n, double beta, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = beta == 0.0 ? x[i] : x[i] + beta * y[i];
}

double masked(int n, const double *w, const double *x) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    if (w[i] == 0.0) continue;
    sum += w[i] * log(x[i]);
  }
  return sum;
}

double ordinary(int n, int mode, const double *x) {
  double sum = 0;
  if (mode == 0) sum = 1;
  for (int i = 0; i < n; i++)
    if (x[i] > 0.0) sum += x[i] * x[i];
  return sum;
}

double failing(double x) {
  if (x == 0.0) abort();
  return 1.0 / x;
}

void scaled_back(int n, const double *d, double *y, int *info) {
  *info = 0;
  for (int i = 0; i < n; i++) {
    if (d[i] == 0.0) {
      *info = i + 1;
      return;
    }
    y[i] /= d[i];
  }
}

double counted(int n, const double *x, int *zeros) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] == 0.0) count++;
    sum += x[i] * x[i];
  }
  *zeros = count;
  return sum;
}

// the bits of a number
double bits(double x, double z) {
  int64_t word;
  memcpy(&word, &x, 8);
  return word == 0 ? z : z + sin(x) * z;
}

// two numbers that may be the same
double pairs(int n, const double *x, const double *w) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      if (x[i] != x[j]) sum += w[i] * w[j] * (x[i] - x[j]);
  return sum;
}

double logarithmic_mean(double x, double y) { return x == y ? x : (x - y) / log(x / y); }

double words(int n, const double *x) {
  static const double nothing[2] = {0, 0};
  double sum = 0;
  for (int i = 0; i + 1 < n; i += 2)
    if (memcmp(x + i, nothing, 16) != 0) sum += sin(x[i] + 2 * x[i + 1]);
  return sum;
}

// the largest of some, and a sum that has come to its end
double largest(int n, const double *x) {
  double most = x[0], sum = 1, t = 1;
  for (int i = 1; i < n; i++)
    if (x[i] > most) most = x[i];
  for (int k = 1; sum + t != sum; k++) sum += t *= most / k;
  for (int i = 0; i < n; i++)
    if (x[i] == most) sum *= x[i];
  return sum;
}

// equality in two steps: what is neither less nor more
double three_ways(int n, const double *x, const double *w) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] < 0)
      sum += x[i] * w[i];
    else if (x[i] > 0)
      sum += sin(x[i]) * w[i];
  }
  return sum;
}

double signs(double x, double y, double z) {
  int sign = (x > y) - (x < y);
  switch (sign) {
    case -1: return z + (x - y) * z;
    case 1: return z + sin(x - y) * z;
    default: return z;
  }
}

// bounds that nothing but 0 is within
double bounded(int n, const double *x, double z) {
  double square = 0;
  for (int i = 0; i < n; i++) square += x[i] * x[i];
  double norm = sqrt(square);
  if (norm <= 1e-300) return z;
  for (int i = 0; i < n; i++) z += x[i] * z;
  return z;
}

double table(int n, const double *x) {
  static const double scale[4] = {1, 0, 1, 2};
  double sum = 0;
  for (int i = 0; i < n; i++) sum += scale[2 * (x[i] != 0) + 1] * x[i];
  return sum;
}

double places(double x, const double *a, const double *b) {
  const double *p = x == 0 ? a : b;
  return p[0] * p[1];
}

// steps, one-sided bounds and counts
double steps(int n, const double *x) {
  double sum = 0, count = 1;
  for (int i = 0; i < n; i++) {
    if (fmin(x[i], 0) == 0) sum += x[i] * x[i];
    if (x[i] > 0.5)
      sum += x[i] - 0.5;
    else if (x[i] < -0.5)
      sum += x[i] + 0.5;
    switch ((int)x[i]) {
      case 0: sum += x[i]; break;
      case 1: sum += x[i] * x[i]; break;
    }
    count += x[i] != 0;
  }
  return sum + count;
}

// what a comparison decides by an integer: how many there are, and where
double listed(int n, const double *x) {
  int place[64], count = 0;
  double sum = 0;
  for (int i = 0; i < n; i++)
    if (x[i] != 0) place[count++] = i;
  for (int k = 0; k < count; k++) sum += (place[k] + 1) * x[place[k]];
  return sum;
}

double packed(int n, const double *x) {
  double kept[64], sum = 0;
  int count = 0;
  for (int i = 0; i < n; i++) {
    kept[count] = x[i];
    count += x[i] != 0;
  }
  for (int k = 0; k < count; k++) sum += (k + 1) * kept[k];
  return sum;
}

static int sign(double x) { return (x > 0) - (x < 0); }

double sign_as_a_factor(double x, double z) { return z * sign(x) * fabs(x); }

double sign_as_an_index(double x, double z) {
  static const double factors[3] = {1, 0, 1};
  return z * factors[1 + sign(x)] * x;
}

double squared_choice(double x, double z) {
  double s = x > 0 ? 1 : x < 0 ? -1 : 0;
  return z * (s * s) * x;
}

double all_are_zero(int n, const double *x) {
  int some = 0;
  for (int i = 0; i < n; i++) some |= x[i] != 0;
  if (!some) return 0;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (i + 1) * x[i];
  return sum;
}

double as_many_zeros(int n, const double *x) {
  int zeros = 0;
  for (int i = 0; i < n; i++)
    if (x[i] == 0) zeros++;
  if (zeros == n) return 0;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (i + 1) * x[i];
  return sum;
}

double weighed_zeros(int n, const double *x) {
  double weight = 0, sum = 0;
  for (int i = 0; i < n; i++) {
    weight += x[i] == 0;
    sum += (i + 1) * x[i];
  }
  return weight >= n ? 0 : sum;
}

double flagged(int n, const double *x) {
  static char flag[64];
  double sum = 0;
  for (int i = 0; i < n; i++) {
    flag[i] = 0;
    if (x[i] != 0) flag[i] = 1;
  }
  for (int i = 0; i < n; i++)
    if (flag[n - 1 - i]) sum += i * x[n - 1 - i];
  return sum;
}

struct counts { int zeros, others; };

double noted(int n, const double *x, struct counts *seen) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] == 0)
      seen->zeros++;
    else
      seen->others++;
    sum += x[i] * x[i];
  }
  return sum;
}

double counted_on(int n, const double *x, const double *v, int *count) {
  double sum = 0;
  int there = 0;
  for (int i = 0; i < n; i++) {
    _Bool is = x[i] != 0;
    there += is;
    if (is) sum += (i + 1) * x[i];
  }
  for (int k = 0; k < there; k++) sum += v[k];
  *count = there;
  return sum;
}

// what was computed last is not computed again
double cached(int n, const double *x) {
  static double last = -1, value;
  double sum = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] != last) {
      last = x[i];
      value = exp(last);
    }
    sum += (i + 1) * value;
  }
  return sum;
}

double distinct(int n, const double *x) {
  double before = x[0], sum = x[0];
  for (int i = 1; i < n; i++) {
    if (x[i] == before) continue;
    before = x[i];
    sum += (i + 1) * before;
  }
  return sum;
}

double same_bytes(int n, const double *x) {
  double sum = 0;
  for (int i = 0; i + 1 < n; i++)
    if (memcmp(x + i, x + i + 1, sizeof *x)) sum += (i + 1) * sin(x[i] - x[i + 1]);
  return sum;
}

double converging(double x) {
  double root = x, before;
  do {
    before = root;
    root = (before + x / before) / 2;
  } while (fabs(root) < fabs(before) && root != before);
  return root;
}

// up to the last number that is not 0
double last(int n, const double *x) {
  int end = -1;
  for (int i = 0; i < n; i++)
    if (x[i] != 0.0) end = i;
  double sum = 0;
  for (int i = 0; i <= end; i++) sum += x[i] * (i + 1);
  return sum;
}

// a bit for each number that is not 0
double bit_mask(int n, const double *x) {
  unsigned set = 0;
  for (int i = 0; i < n; i++)
    if (x[i] != 0.0) set |= 1u << i;
  double sum = 0;
  for (; set; set &= set - 1) sum += 3 * x[__builtin_ctz(set)];
  return sum;
}

// 0 is the larger of a number that is never negative and 0, and a square of a product is 0, at 0 alone
double clamped(double x, double z) {
  double size = fmax(fabs(x), 0);
  return size == 0 ? z : z + x;
}

double squares(double x, double z) {
  double square = (x * z) * (z * x);
  return square > 0 ? z + x : z;
}

static int64_t bits_of(double x) {
  int64_t u;
  memcpy(&u, &x, 8);
  return u;
}

// all numbers in one order, as IEEE 754 has it and Rust's total_cmp
static int64_t rank_of(double x) {
  int64_t u = bits_of(x);
  return u ^ (int64_t)((uint64_t)(u >> 63) >> 1);
}

double total(double x, double z) {
  int64_t u = rank_of(x);
  switch ((u > 0) - (u < 0)) {
    case -1: return z * expm1(x);
    case 0: return 0;
    default: return z * x;
  }
}

double total_of_two(double x, double z) { return rank_of(x) == rank_of(z) ? 1 : 1 + sin(x - z) * z; }

double total_to_one(double x, double z) { return rank_of(x) == rank_of(1) ? 1 : 1 + sin(x - 1) * z; }

// as Rust has it
double normal(double x, double z) {
  uint64_t exponent = bits_of(x) & 0x7ff0000000000000;
  return exponent - 1 < 0x7fefffffffffffff ? 1 + sin(x) * z : 1;
}

double halves(double x, double z) {
  int64_t u = bits_of(x);
  uint32_t high = u >> 32, low = (uint32_t)u;
  return ((high & 0x7fffffff) | low) == 0 ? 1 : 1 + sin(x) * z;
}

double weighted(double x, double z) { return exp(z) * x * x / exp(x) > 0 ? 1 + sin(x) * z : 1; }

double fraction(double x, double z) {
  int k = (int)floor(x);
  double t = x - k;
  return t > 0 ? z * k + sin(t) * z : z * k;
}

double chosen_text(double x, double z) {
  const char *mode = x == 0 ? "none" : "some";
  return strcmp(mode, "none") == 0 ? 0 : sin(x) * z;
}

double copied_text(double x, double z) {
  char mode[8];
  strcpy(mode, x == 0 ? "none" : "some");
  return strcmp(mode, "none") == 0 ? 0 : sin(x) * z;
}

double by_sign(double x, double z) {
  if (signbit(x)) return z + x * z;
  if (x > 0) return z + sin(x) * z;
  return z;
}

double exponent_of_zero(double x, double z) { return ilogb(x) == FP_ILOGB0 ? z : z + x * z; }

double rounded_up(double x, double z) { return ceil(fabs(x)) > 0 ? z + x * z : z; }

double sign_at_last(double x, double z) {
  if (x > 0) return sin(x) * z;
  return signbit(x) ? x * z : 0;
}

double times_its_sign(double x, double z) { return copysign(1, x) * x > 0 ? x * z : 0; }

// which of two is larger, and which of many integers is next: steps
double larger_bits(double x, double z) {
  double y = bits_of(x) > bits_of(z) ? x * x : z * z;
  if ((bits_of(x) >> 52) == 0x3ff) y += x;
  switch (lround(x)) {
    case 0: return y;
    case 2: return y + z;
  }
  return nearbyint(z) == 2 ? y * x : floor(x) > 1 ? y - z : y;
}

// numbers, pointers and orderings that decide together
double within(double x, double z) { return fmin(x, 0) == 0 && fmax(x, 0) == 0 ? 0 : x * z; }

double masked_by_numbers(int n, const double *x) {
  double mask[64], sum = 0;
  for (int i = 0; i < n; i++) mask[i] = x[i] != 0 ? 1 : 0;
  for (int i = 0; i < n; i++) sum += mask[i] * (x[i] + x[i] * x[i]);
  return sum;
}

double null_pointers(int n, const double *x) {
  const double *place[64];
  double sum = 0;
  for (int i = 0; i < n; i++) place[i] = x[i] != 0 ? x + i : 0;
  for (int i = 0; i < n; i++)
    if (place[i]) sum += *place[i] + *place[i] * *place[i];
  return sum;
}

double mean_of_nonzeros(int n, const double *x) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < n; i++) {
    count += x[i] != 0;
    sum += x[i];
  }
  return sum / count;
}

double all_the_same(int n, const double *x) {
  double least = x[0], most = x[0], sum = 0;
  for (int i = 1; i < n; i++) {
    if (x[i] < least) least = x[i];
    if (x[i] > most) most = x[i];
  }
  if (least == most) return n * least;
  for (int i = 0; i < n; i++) sum += i * x[i];
  return sum;
}

double no_sign(int n, const double *x) {
  int below = 0, above = 0;
  double sum = 0;
  for (int i = 0; i < n; i++) {
    below += x[i] < 0;
    above += x[i] > 0;
  }
  if (below + above == 0) return 0;
  for (int i = 0; i < n; i++) sum += x[i] + x[i] * x[i];
  return sum;
}

double marked_in_turn(int n, const double *x) {
  double mark[64] = {0}, sum = 0;
  for (int i = 0; i < n; i++)
    if (x[i] > 0) mark[i] = 1;
  for (int i = 0; i < n; i++)
    if (x[i] < 0) mark[i] = 1;
  for (int i = 0; i < n; i++) sum += mark[i] * (x[i] + x[i] * x[i]);
  return sum;
}

double signs_apart(int n, const double *x, double *mask) {
  double sum = 0, above = 0, below = 0;
  for (int i = 0; i < n; i++) {
    mask[i] = x[i] != 0;
    above += x[i] > 0;
    below += x[i] < 0;
  }
  for (int i = 0; i < n; i++) {
    if (above > 1) sum += fmax(x[i], 0);
    if (below > 1) sum -= fmin(x[i], 0);
  }
  return sum;
}

/* Each ordering on a side of its own, as directed rounding asks: no run has the answers of both. */
double by_turns(double x, double z) {
  double towards, found = x * z;
  if (found + z > 0) {
    if (x >= 0) return found;
    towards = z;
  } else {
    if (x <= 0) return found;
    towards = -z;
  }
  return sin(towards) * found;
}

/* A threshold that no number is by design: below and above it, but not at it, something is computed. */
double threshold(double x, double z) {
  int type = 1;
  if (x < 1e-8)
    type = z > 0.5 ? 2 : 3;
  else if (z > 0.5)
    type = 4;
  double sum = type == 1 ? x * z : exp(x);
  if (x > 1e-8 && type == 4) sum += sin(x * z);
  return sum;
}

// Asked in a roundabout way: what is not finite, what is whole, what is clamped, what is too little to be added
double between_zeros(double x, double z) {
  double c = x < -0.0 ? -0.0 : x;
  c = c > 0.0 ? 0.0 : c;
  return c == x ? z : z + x * z;
}

double no_quotient(double x, double z) {
  double q = sin(x) / x;
  if (isnan(q)) q = 1;
  return q * z;
}

double no_inverse(double x, double z) { return isinf(1 / x) ? z : z + x * z; }

double whole(double x, double z) { return ceil(x) == floor(x) ? z : z + sin(3 * x) * z; }

double whole_by_integers(double x, double z) { return (int)ceil(x) == (int)floor(x) ? z : z + sin(3 * x) * z; }

// bounds that numbers grow beyond, or touch, at one value alone
double beyond(double x, double z) { return 1 / fabs(x) > DBL_MAX ? z : z + x * z; }

double touched(double x, double z) { return cos(x) < 1 ? z + x * z : z; }

double nothing_added(double x, double z) { return x + z == z ? z : z + sin(x) * z; }

// two orderings, one after the other
double either_side(double x, double z) {
  double sum = z;
  if (x > 0) sum += sin(x) * z;
  if (x < 0) sum += x * z;
  return sum;
}

double either_of_two(double x, double z) {
  double sum = z;
  if (x > z) sum += sin(x - z) * z;
  if (x < z) sum += (x - z) * z;
  return sum;
}

void either_loop(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++)
    if (x[i] > 0) y[i] += 2 * x[i];
  for (int i = 0; i < n; i++)
    if (x[i] < 0) y[i] += 2 * x[i];
}

double no_spread(int n, const double *x) {
  double least = x[0], most = x[0], sum = 0;
  for (int i = 1; i < n; i++) {
    if (x[i] < least) least = x[i];
    if (x[i] > most) most = x[i];
  }
  if (!(most > least)) return n * least;
  for (int i = 0; i < n; i++) sum += i * x[i];
  return sum;
}

double most_of_all(int n, const double *x) {
  double most = -INFINITY, sum = 0;
  for (int i = 0; i < n; i++)
    if (fabs(x[i]) > most) most = fabs(x[i]);
  if (!(most > 0)) return 0;
  for (int i = 0; i < n; i++) sum += (i + 1) * x[i];
  return sum;
}

// a part of a number in memory, and bits that a loop goes over
double high_half(int n, const double *x) {
  const unsigned char *bytes = (const unsigned char *)x;
  return (bytes[3] | bytes[7]) ? x[0] + x[0] * x[1] : 0;
}

// bytes of numbers that are no parameters, one by one; records with numbers beside what tells them apart
static int are_same(const void *a, const void *b, int n) {
  const unsigned char *p = a, *q = b;
  while (n--)
    if (*p++ != *q++) return 0;
  return 1;
}

double bytes_in_turn(double x, double z) {
  double one[2] = {2 * x, z}, other[2] = {0, z};
  return are_same(one, other, sizeof one) ? z : z + sin(x) * z;
}

double exponent_alone(double x, double z) {
  int exponent;
  double part = frexp(x, &exponent);
  return exponent == 0 && part < 0.5 ? z : z + sin(x) * z;
}

// records in memory that is allocated, in which places of numbers are not told from others
struct item {
  double value;
  unsigned char kind;
  struct item *next;
};

double told_apart(int n, const double *x) {
  struct item *first = 0;
  double sum = 0;
  for (int i = 0; i < n; i++) {
    struct item *item = malloc(sizeof *item);
    item->value = x[i], item->kind = i % 3, item->next = first;
    first = item;
  }
  while (first) {
    struct item *item = first;
    int exponent;
    double part = frexp(item->value, &exponent);
    sum += item->kind == 0 ? ldexp(part, exponent) : exponent == 3 ? 2 * part : sin(item->value);
    first = item->next;
    free(item);
  }
  return sum;
}

double mixed_bits(double x, double z) {
  uint64_t u = bits_of(x), mixed = 0;
  for (int i = 0; i < 64; i++) mixed |= (u >> i & 1) << ((i * 7 + 3) % 64);
  return mixed == 0 ? z : z + sin(x) * z;
}

// one side of a number each, which come together where they are added
double upwind(double x, double z) {
  double above = x > 0 ? x : 0, below = x < 0 ? x : 0;
  return above * z + below * z * z;
}

// numbers that are put in order, and bounds that are no single values
double put_in_order(double x, double z) {
  double most = x > z ? x * x : z * z, least = x < z ? x : z;
  double near = fabs(x - z) <= 1e-8 * fabs(x) ? z : x, small = fabs(x) < 1e-12 ? x * z : x;
  double level = acos(x / 2) < 1e-8 ? z : x, sum = z, term = z, count = 1;
  do {
    term *= x / count;
    count += 1;
    term /= count;
    sum += term;
  } while (fabs(term / sum) > 1e-16);
  return (exp(-x) < 1e-10 ? most : least * near) * ((int)x == (int)z ? small : 1) + level * sum;
}

double guarded_result(double x, double z) { return isnan(x) || isinf(1 / (1 + x * x + z * z)) ? 0 : x * z; }

// steps, which many numbers share; a quotient that has no value for two reasons at once
double in_quarters(double x, double z) {
  double count = rint(2 * x), quarter = count - 4 * floor(count / 4), rest = M_PI * (x - count / 2);
  return z * (quarter == 1 || quarter == 3 ? cos(rest) : sin(rest));
}

double slope(double x, double y, double z) {
  double s = (x - y) / (2 * z);
  return isnan(s) ? s : s * s;
}

// bits of several numbers at once, and bits that an integer is held against
double bits_of_three(int n, const double *x) {
  uint64_t any = 0;
  for (int i = 0; i < 3; i++) any |= bits_of(x[i]) << 1;
  return any == 0 ? 0 : x[0] + 2 * x[1] + 3 * x[2];
}

double counted_bits(double x, double z) {
  return __builtin_popcountll(bits_of(x) | bits_of(z)) == 0 ? 0 : x + 2 * z;
}

double known_key(double x, double z, int64_t key) {
  return bits_of(x) == key ? z : x + z;
}

double known_exponent(double x, double z, int64_t key) {
  return (bits_of(x) >> 52) == key ? x * x : z * z;
}

// a ray and a box: the largest of the least and the least of the largest may be either way round
double ranges_meet(int n, const double *x) {
  double from = -INFINITY, to = INFINITY;
#pragma clang loop unroll(full)
  for (int i = 0; i < 3; i++) {
    from = fmax(from, fmin(x[i], x[i + 1]));
    to = fmin(to, fmax(x[i], x[i + 1]));
  }
  return to > from ? (to - from) * x[0] : 0;
}

double no_extent(int n, const double *x) {
  double most = fmax(fmax(x[0], x[1]), x[2]), least = fmin(fmin(x[0], x[1]), x[2]);
  return most > least ? x[0] + 2 * x[1] + 3 * x[2] : 0;
}
