// What NVIDIA's libdevice has beyond C's library, for programs that call it by name and run on a CPU: as in our header.

#define DEFINE(T, name, function) \
  extern "C" __attribute__((device)) T __nv_##name(T x) { return function(x); }
#define BOTH(name) DEFINE(double, name, name) DEFINE(float, name##f, name##f)
BOTH(erfinv)
BOTH(erfcinv)
BOTH(erfcx)
BOTH(normcdfinv)
BOTH(sinpi)
BOTH(cospi)
DEFINE(double, cyl_bessel_i0, cyl_bessel_i0)

#define SINCOS(T, name) \
  extern "C" __attribute__((device)) void __nv_##name(T x, T *s, T *c) { name(x, s, c); }
SINCOS(double, sincospi)
SINCOS(float, sincospif)

#define NORM(T, suffix)                                                                                                \
  extern "C" __attribute__((device)) T __nv_norm3d##suffix(T a, T b, T c) { return norm3d##suffix(a, b, c); }          \
  extern "C" __attribute__((device)) T __nv_rnorm3d##suffix(T a, T b, T c) { return rnorm3d##suffix(a, b, c); }        \
  extern "C" __attribute__((device)) T __nv_norm4d##suffix(T a, T b, T c, T d) { return norm4d##suffix(a, b, c, d); }
NORM(double, )
NORM(float, f)
