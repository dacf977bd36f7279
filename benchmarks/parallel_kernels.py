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

_HEXAHEDRA = """
enum { E = 30, P = E + 1, CELLS = E * E * E };
static int corner(int cell, int q) {
  int i = cell % E + (q & 1), j = cell / E % E + (q >> 1 & 1), l = cell / (E * E) + (q >> 2);
  return i + P * (j + P * l);
}
void k(int n, const double *x, double *y) {
  int m = n / 3, *node = malloc(4 * 8 * CELLS), *first = calloc(m + 2, 4), *list = malloc(4 * 8 * CELLS);
  double *force = malloc(8 * 24 * CELLS);
  for (int q = 0; q < 8 * CELLS; q++) { node[q] = corner(q / 8, q % 8); first[node[q] + 2]++; }
  for (int i = 0; i < m; i++) first[i + 2] += first[i + 1];
  for (int q = 0; q < 8 * CELLS; q++) list[first[node[q] + 1]++] = q;
#pragma omp parallel for
  for (int c = 0; c < CELLS; c++) {
    double p[8][3], mid[3] = {0, 0, 0}, a[3], b[3], d[3];
    for (int q = 0; q < 8; q++)
      for (int r = 0; r < 3; r++) { p[q][r] = x[3 * node[8 * c + q] + r]; mid[r] += 0.125 * p[q][r]; }
    for (int r = 0; r < 3; r++) { a[r] = p[7][r] - p[0][r]; b[r] = p[6][r] - p[1][r]; d[r] = p[5][r] - p[2][r]; }
    double volume = a[0] * (b[1] * d[2] - b[2] * d[1]) + a[1] * (b[2] * d[0] - b[0] * d[2])
                    + a[2] * (b[0] * d[1] - b[1] * d[0]);
    double pressure = 1 / (1 + volume * volume);
    for (int q = 0; q < 8; q++)
      for (int r = 0; r < 3; r++) {
        double e = p[q][r] - mid[r];
        force[3 * (8 * c + q) + r] = pressure * e + 0.1 * sin(e);
      }
  }
#pragma omp parallel for
  for (int i = 0; i < m; i++)
    for (int r = 0; r < 3; r++) {
      double s = 0;
      for (int q = first[i]; q < first[i + 1]; q++) s += force[3 * list[q] + r];
      y[3 * i + r] = s;
    }
  free(node); free(first); free(list); free(force);
}"""

_BUNDLE = """
enum { CAMERAS = 50, POINTS = 4000, SEEN = 20 };
static void residual(const double *c, const double *p, double u, double v, double *r) {
  double t2 = c[0] * c[0] + c[1] * c[1] + c[2] * c[2], t = sqrt(t2), co = cos(t), si = sin(t) / t, w[3], z[3];
  for (int i = 0; i < 3; i++) w[i] = p[i] - c[3 + i];
  double dot = (c[0] * w[0] + c[1] * w[1] + c[2] * w[2]) * (1 - co) / t2;
  for (int i = 0; i < 3; i++) {
    int j = (i + 1) % 3, l = (i + 2) % 3;
    z[i] = co * w[i] + si * (c[j] * w[l] - c[l] * w[j]) + dot * c[i];
  }
  double a = z[0] / (3 + z[2]), b = z[1] / (3 + z[2]), q = a * a + b * b, f = c[6] * (1 + c[7] * q + c[8] * q * q);
  r[0] = f * a + c[9] - u;
  r[1] = f * b + c[10] - v;
}
void k(int n, const double *x, double *y) {
  double cost = 0;
#pragma omp parallel for reduction(+ : cost)
  for (int i = 0; i < POINTS * SEEN; i++) {
    const double *c = x + 11 * ((i * 7 + i / SEEN) % CAMERAS), *p = x + 11 * CAMERAS + 3 * (i / SEEN);
    double r[2];
    residual(c, p, 0.1 * (i % 5), 0.07 * (i % 3), r);
    cost += log1p(r[0] * r[0] + r[1] * r[1]);
  }
  for (int i = 0; i < n; i++) y[i] = 0;
  y[0] = cost;
}"""

KERNELS: dict[str, tuple[str, int]] = {
    "Black-Scholes": (_HEAD + _BLACK_SCHOLES, 400_000),
    "n-body": (_HEAD + _BODIES, 2_000),
    "Jacobi": (_HEAD + _JACOBI, 90_000),
    "sparse": (_HEAD + _SPARSE, 60_000),
    "LBM": (_HEAD + _LATTICE, 900_000),
    "GMM": (_HEAD + _MIXTURE, 60_000),
    "LULESH": (_HEAD + _HEXAHEDRA, 3 * 31**3),
    "bundle": (_HEAD + _BUNDLE, 50 * 11 + 4000 * 3),
}
