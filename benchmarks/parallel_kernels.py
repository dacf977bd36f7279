"""Kernels with directives of OpenMP, all `void k(int n, const double *x, double *y)`, and the sizes to time them at."""

from __future__ import annotations

_HEAD = "#include <math.h>\n#include <stdlib.h>\n"

NORM = (
    _HEAD
    + """
static double mag(int n, const double *x) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  return sqrt(s);
}
void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = x[i] / mag(n, x);
}"""
)

_BLACK_SCHOLES = """
void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double s = 100 * x[i], v = 0.2, r = 0.03, t = 0.5 + x[i];
    double d1 = (log(s / 95) + (r + v * v / 2) * t) / (v * sqrt(t)), d2 = d1 - v * sqrt(t);
    y[i] = s * 0.5 * erfc(-d1 * 0.7071067811865475) - 95 * exp(-r * t) * 0.5 * erfc(-d2 * 0.7071067811865475);
  }
}"""

_BODIES = """
void k(int n, const double *x, double *y) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    double s = 0;
    for (int j = 0; j < n; j++) { double d = x[i] - x[j]; s += d / (d * d * sqrt(d * d + 0.01) + 0.1); }
    y[i] = s;
  }
}"""

_JACOBI = """
enum { M = 300 };
static void sweep(const double *restrict x, const double *restrict u, double *restrict v) {
#pragma omp parallel for
  for (int i = 1; i < M - 1; i++)
    for (int j = 1; j < M - 1; j++)
      v[i * M + j] = 0.25 * (u[(i - 1) * M + j] + u[(i + 1) * M + j] + u[i * M + j - 1] + u[i * M + j + 1])
                     + 0.01 * x[i * M + j] * sin(u[i * M + j]);
}
void k(int n, const double *x, double *y) {
  double *u = malloc(8 * M * M);
  for (int i = 0; i < M * M; i++) u[i] = y[i] = x[i];
  for (int t = 0; t < 5; t++) { sweep(x, u, y); sweep(x, y, u); }
  for (int i = 0; i < M * M; i++) y[i] = u[i];
  free(u);
}"""

_SPARSE = """
void k(int n, const double *x, double *y) {
#pragma omp parallel for schedule(dynamic, 64)
  for (int i = 0; i < n; i++) {
    double s = 0;
    for (int j = 0; j < 40; j++) { int c = (i + j * 7919L) % n; s += (1 + 0.01 * j) * x[c] * x[i]; }
    y[i] = s;
  }
}"""

_LATTICE = """
void k(int n, const double *x, double *y) {
  enum { Q = 9 };
  int m = n / Q;
#pragma omp parallel for
  for (int i = 0; i < m; i++) {
    double f[Q], rho = 0, ux = 0, uy = 0;
    const int cx[Q] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[Q] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    const double w[Q] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};
    for (int q = 0; q < Q; q++) { f[q] = x[q * m + i]; rho += f[q]; ux += cx[q] * f[q]; uy += cy[q] * f[q]; }
    ux /= rho; uy /= rho;
    for (int q = 0; q < Q; q++) {
      double cu = 3 * (cx[q] * ux + cy[q] * uy);
      y[q * m + i] = f[q] - 1.2 * (f[q] - w[q] * rho * (1 + cu + 0.5 * cu * cu - 1.5 * (ux * ux + uy * uy)));
    }
  }
  for (int i = m * Q; i < n; i++) y[i] = 0;
}"""

_MIXTURE = """
void k(int n, const double *x, double *y) {
  enum { K = 25 };
  double total = 0;
#pragma omp parallel for reduction(+ : total)
  for (int i = K; i < n; i++) {
    double sum = 0;
    for (int c = 0; c < K; c++) { double d = x[i] - 0.1 * c * x[c]; sum += exp(-0.5 * d * d * x[c]) * x[c]; }
    total += log(sum);
  }
  for (int i = 0; i < n; i++) y[i] = 0;
  y[0] = total / n;
}"""

KERNELS: dict[str, tuple[str, int]] = {
    "Black-Scholes": (_HEAD + _BLACK_SCHOLES, 400_000),
    "n-body": (_HEAD + _BODIES, 2_000),
    "Jacobi": (_HEAD + _JACOBI, 90_000),
    "sparse": (_HEAD + _SPARSE, 60_000),
    "LBM": (_HEAD + _LATTICE, 900_000),
    "GMM": (_HEAD + _MIXTURE, 60_000),
}
