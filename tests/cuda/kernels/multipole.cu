// Resonances as a sum over poles: complex arithmetic on a structure, with a rational approximation of the Faddeeva
// function far from the origin.
struct Complex {
  double re, im;
};

__device__ Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
__device__ Complex operator/(Complex a, Complex b) {
  double n = b.re * b.re + b.im * b.im;
  return {(a.re * b.re + a.im * b.im) / n, (a.im * b.re - a.re * b.im) / n};
}
__device__ Complex scaled(double s, Complex a) { return {s * a.re, s * a.im}; }

__device__ Complex faddeeva(Complex z) {
  Complex square = z * z;
  Complex first = scaled(0.5124242, z) / (square + Complex{-0.2752551, 0.0});
  Complex second = scaled(0.05176536, z) / (square + Complex{-2.724745, 0.0});
  Complex sum = first + second;
  return {-sum.im, sum.re};
}

extern "C" __global__ void multipole(int lookups, int poles, const double *energy, const double *pole, const double *residue,
                                     double doppler, double *sigma) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < lookups; i += gridDim.x * blockDim.x) {
    double root = sqrt(energy[i]);
    Complex total = {0, 0};
    for (int p = 0; p < poles; p++) {
      Complex z = scaled(1 / doppler, Complex{root - pole[2 * p], -pole[2 * p + 1]});
      double angle = 0.3 * p * root;
      Complex phase = {cos(angle), -sin(angle)};
      total = total + phase * (Complex{residue[2 * p], residue[2 * p + 1]} * faddeeva(z));
    }
    sigma[2 * i] = total.re / energy[i];
    sigma[2 * i + 1] = total.im / energy[i];
  }
}
