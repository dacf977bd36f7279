// cuFFT on the CPU: Stockham's transforms in any radix. Not normalised; numbers are pairs of reals.
// provides: cufft[A-Z]\w+
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

namespace {

constexpr int success = 0, invalid_value = 4, invalid_size = 8;
constexpr int r2c = 0x2a, c2r = 0x2c, d2z = 0x6a, z2d = 0x6c;

bool from_real(int type) { return type == r2c || type == d2z; }
bool to_real(int type) { return type == c2r || type == z2d; }

struct Plan {
  int type, rank, n[3], batch;
  // From one number of a line to the next, from one transform to the next, and the extents of the memory that holds them.
  int from_step, from_distance, from_extent[3], to_step, to_distance, to_extent[3];
  bool packed;  // whether nothing was said about the memory of real numbers
};

template <class T> struct Pair {
  T re, im;
};

int least_factor(int n) {
  for (int p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

// One line of n numbers: `w` holds the n roots of one, `other` is workspace.
template <class T> void line(Pair<T> *x, Pair<T> *other, const Pair<T> *w, int n) {
  for (int m = n, s = 1; m > 1;) {
    int p = least_factor(m), q = m / p;
    for (int k = 0; k < q; k++)
      for (int r = 0; r < p; r++)
        for (int t = 0; t < s; t++) {
          T re = 0, im = 0;
          for (int j = 0; j < p; j++) {
            Pair<T> a = x[t + s * (k + q * j)], b = w[(int)(((long)j * r * (n / p) + (long)k * r * s) % n)];
            re += a.re * b.re - a.im * b.im;
            im += a.re * b.im + a.im * b.re;
          }
          other[t + s * (p * k + r)] = {re, im};
        }
    memcpy(x, other, sizeof(*x) * n);
    m = q;
    s *= p;
  }
}

// All lines of one axis of `outer` x n x `inner` numbers.
template <class T> void axis(Pair<T> *x, int outer, int n, int inner, int direction) {
  Pair<T> *w = (Pair<T> *)malloc(sizeof(*w) * n * 3), *held = w + n, *other = w + 2 * n;
  if (!w) __builtin_trap();
  for (int i = 0; i < n; i++) {
    double angle = direction * 6.283185307179586 * i / n;
    w[i] = {(T)cos(angle), (T)sin(angle)};
  }
  for (int i = 0; i < outer; i++)
    for (int j = 0; j < inner; j++) {
      Pair<T> *at = x + (long)i * n * inner + j;
      for (int k = 0; k < n; k++) held[k] = at[(long)k * inner];
      line(held, other, w, n);
      for (int k = 0; k < n; k++) at[(long)k * inner] = held[k];
    }
  free(w);
}

// Where a row of the last axis begins: rows are counted through the axes before it.
long row(const int *n, const int *extent, int rank, int index, int step) {
  long at = rank == 3 ? (long)(index / n[1]) * extent[1] + index % n[1] : index;
  return at * extent[rank - 1] * step;
}

template <class T> int execute(Plan plan, const T *from, T *to, int direction) {
  bool real_in = from_real(plan.type), real_out = to_real(plan.type);
  int rank = plan.rank, last = plan.n[rank - 1], half = last / 2 + 1, width = real_in || real_out ? half : last, rows = 1;
  for (int a = 0; a < rank - 1; a++) rows *= plan.n[a];
  if (from == to && plan.packed) {  // in place, rows of real numbers have room for their complex ones
    (real_in ? plan.from_extent : plan.to_extent)[rank - 1] = 2 * half;
    (real_in ? plan.from_distance : plan.to_distance) = rows * 2 * half;
  }
  Pair<T> *x = (Pair<T> *)malloc(sizeof(*x) * ((long)rows * width + last)), *whole = x + (long)rows * width;
  if (!x) __builtin_trap();
  for (int b = 0; b < plan.batch; b++) {
    const T *source = from + (long)b * plan.from_distance * (real_in ? 1 : 2);
    T *target = to + (long)b * plan.to_distance * (real_out ? 1 : 2);
    for (int i = 0; i < rows; i++) {
      long at = row(plan.n, plan.from_extent, rank, i, plan.from_step);
      if (real_in) {
        for (int j = 0; j < last; j++) whole[j] = {source[at + (long)j * plan.from_step], 0};
        axis(whole, 1, last, 1, direction);
        memcpy(x + (long)i * width, whole, sizeof(*x) * width);
      } else {
        const Pair<T> *pairs = (const Pair<T> *)source;
        for (int j = 0; j < width; j++) x[(long)i * width + j] = pairs[at + (long)j * plan.from_step];
      }
    }
    for (int a = rank - 2, inner = width; a >= 0; inner *= plan.n[a--]) {
      int outer = rank == 3 && a == 1 ? plan.n[0] : 1;
      axis(x, outer, plan.n[a], inner, direction);
    }
    if (!real_in && !real_out) axis(x, rows, last, 1, direction);
    for (int i = 0; i < rows; i++) {
      long at = row(plan.n, plan.to_extent, rank, i, plan.to_step);
      if (real_out) {
        for (int j = 0; j < width; j++) whole[j] = x[(long)i * width + j];
        whole[0].im = 0;
        if (last % 2 == 0) whole[last / 2].im = 0;
        for (int j = width; j < last; j++) whole[j] = {whole[last - j].re, -whole[last - j].im};
        axis(whole, 1, last, 1, direction);
        for (int j = 0; j < last; j++) target[at + (long)j * plan.to_step] = whole[j].re;
      } else {
        Pair<T> *pairs = (Pair<T> *)target;
        for (int j = 0; j < width; j++) pairs[at + (long)j * plan.to_step] = x[(long)i * width + j];
      }
    }
  }
  free(x);
  return success;
}

}  // namespace

extern "C" {

int cufftMakePlanMany(Plan *plan, int rank, int *n, int *from_extent, int from_step, int from_distance, int *to_extent,
                      int to_step, int to_distance, int type, int batch, size_t *workspace) {
  if (rank < 1 || rank > 3 || batch < 1) return invalid_value;
  plan->type = type;
  plan->rank = rank;
  plan->batch = batch;
  int from = 1, to = 1;
  for (int a = 0; a < rank; a++) {
    if (n[a] < 1) return invalid_size;
    int half = a == rank - 1 ? n[a] / 2 + 1 : n[a];
    plan->n[a] = n[a];
    plan->from_extent[a] = from_extent ? from_extent[a] : to_real(type) ? half : n[a];
    plan->to_extent[a] = to_extent ? to_extent[a] : from_real(type) ? half : n[a];
    from *= plan->from_extent[a];
    to *= plan->to_extent[a];
  }
  // Without the extents of its memory, a side is packed.
  plan->from_step = from_extent ? from_step : 1;
  plan->from_distance = from_extent ? from_distance : from;
  plan->to_step = to_extent ? to_step : 1;
  plan->to_distance = to_extent ? to_distance : to;
  plan->packed = from_real(type) ? !from_extent : to_real(type) && !to_extent;
  if (workspace) *workspace = 0;
  return success;
}
int cufftMakePlan1d(Plan *plan, int n, int type, int batch, size_t *workspace) {
  return cufftMakePlanMany(plan, 1, &n, 0, 0, 0, 0, 0, 0, type, batch, workspace);
}
int cufftMakePlan2d(Plan *plan, int n, int m, int type, size_t *workspace) {
  int extents[] = {n, m};
  return cufftMakePlanMany(plan, 2, extents, 0, 0, 0, 0, 0, 0, type, 1, workspace);
}
int cufftMakePlan3d(Plan *plan, int n, int m, int k, int type, size_t *workspace) {
  int extents[] = {n, m, k};
  return cufftMakePlanMany(plan, 3, extents, 0, 0, 0, 0, 0, 0, type, 1, workspace);
}

int cufftCreate(Plan **plan) {
  *plan = (Plan *)calloc(1, sizeof(Plan));
  if (!*plan) __builtin_trap();
  return success;
}
int cufftDestroy(Plan *plan) { return free(plan), success; }
int cufftSetStream(Plan *, void *) { return success; }
int cufftSetAutoAllocation(Plan *, int) { return success; }
int cufftSetWorkArea(Plan *, void *) { return success; }
int cufftPlanMany(Plan **plan, int rank, int *n, int *from_extent, int from_step, int from_distance, int *to_extent,
                  int to_step, int to_distance, int type, int batch) {
  return cufftCreate(plan), cufftMakePlanMany(*plan, rank, n, from_extent, from_step, from_distance, to_extent, to_step,
                                              to_distance, type, batch, 0);
}
int cufftPlan1d(Plan **plan, int n, int type, int batch) {
  return cufftCreate(plan), cufftMakePlan1d(*plan, n, type, batch, 0);
}
int cufftPlan2d(Plan **plan, int n, int m, int type) { return cufftCreate(plan), cufftMakePlan2d(*plan, n, m, type, 0); }
int cufftPlan3d(Plan **plan, int n, int m, int k, int type) {
  return cufftCreate(plan), cufftMakePlan3d(*plan, n, m, k, type, 0);
}

#define EXECUTE(C, R, T)                                                                                              \
  int cufftExec##C##2##C(Plan *plan, T *from, T *to, int direction) { return execute(*plan, from, to, direction); }      \
  int cufftExec##R##2##C(Plan *plan, T *from, T *to) { return execute(*plan, from, to, -1); }                    \
  int cufftExec##C##2##R(Plan *plan, T *from, T *to) { return execute(*plan, from, to, 1); }
EXECUTE(C, R, float)
EXECUTE(Z, D, double)
#undef EXECUTE
}
