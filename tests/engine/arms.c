// Loops whose iterations go one way or another, and keep something on each.
#include <math.h>

double two(int n, const int *way, const double *x) {
  double s = 0.2;
  for (int i = 0; i < n; i++) {
    if (way[i] % 2)
      s = sin(s * x[i]) * exp(-s);
    else
      s = log(1.5 + s * x[i]) / (1.1 + s);
  }
  return s;
}

double many(int n, const int *way, const double *x) {
  double s = 0.3;
  for (int i = 0; i < n; i++) {
    switch (way[i] % 5) {
      case 0: s = sin(s + x[i]); break;
      case 1: s = exp(-s * s) + x[i]; break;
      case 2: s = s / (1 + x[i] * x[i]); break;
      case 3: s = log(2 + s * s) * x[i];  // and on
      default: s = tanh(s - x[i]) + 0.1 * s;
    }
  }
  return s;
}

// What both branches keep, one after the other, belongs to one iteration.
double twice(int n, const int *way, const double *x) {
  double s = 0.4;
  for (int i = 0; i < n; i++) {
    if (way[i] % 2) s = sin(s * x[i]);
    if (way[i] % 3) s = exp(-s * x[i]);
    else if (way[i] % 5) s = cos(s) * x[i];
    else s = s * s;
  }
  return s;
}

// An arm that goes to the next iteration, one that leaves, one with a loop of its own.
double ways(int n, const int *way, const double *x) {
  double s = 0.5;
  for (int i = 0; i < n; i++) {
    if (way[i] == 1) {
      s = sin(s) + x[i];
      continue;
    }
    if (way[i] == 2) {
      for (int j = 0; j < 3; j++) s = 0.5 * s + sin(s * x[(i + j) % n]);
    } else if (way[i] == 3) {
      s = s * exp(-s * s);
      if (s * s > 8) return s * x[i];
    } else {
      s = s / (1 + s * s);
    }
    s = tanh(s) + 0.3 * x[i] * s;
  }
  return s;
}

// A length that only the run knows: a frame for each iteration.
double open_ended(int n, const int *way, const double *x) {
  double s = 0.6;
  for (int i = 0; i < n && way[i] < 9; i++) {
    double t = s;
    while (t > 0.4) {
      if (t > 0.8) t = t * exp(-0.3 * t);
      else t = sin(t) - 0.1 * t * x[i];
    }
    s = t + x[i] * x[i] * 0.7;
  }
  return s;
}

// Which number an arm left is chosen behind it.
double behind(int n, const int *way, const double *x, double *y) {
  double s = 0.7;
  for (int i = 0; i < n; i++) {
    double a;
    if (way[i] % 2) a = sin(s * x[i]);
    else a = exp(-s * x[i]);
    y[i] = a * s;
    s = a * a + 0.2 * s * y[i];
    if (way[i] % 2) s *= cos(a);
  }
  return s;
}
