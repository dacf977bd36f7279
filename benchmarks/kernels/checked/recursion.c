static double f(int n, double x) { return n < 2 ? x : f(n - 1, x) + f(n - 2, x * 0.5); }
double k(double x) { return f(20, x); }
