// Arithmetic with directed rounding: rounded to the nearest, and then moved to its neighbour where the exact error, which
// is a number too, says so (Knuth's sum, products and quotients by fused operations; of fused operations Boldo and Muller,
// "Exact and approximated error of the FMA"). The derivative is that of the operation. Not where a result overflows.
#pragma once

#define __JE_DIRECTED(T, m, next, root, fused)                                                                \
  __JE T m##rounded_rd(T found, T error) { return error < 0 ? next(found, (T)-INFINITY) : found; }            \
  __JE T m##rounded_ru(T found, T error) { return error > 0 ? next(found, (T)INFINITY) : found; }             \
  __JE T m##rounded_rz(T found, T error) {                                                                    \
    return found > 0 ? m##rounded_rd(found, error) : m##rounded_ru(found, error);                             \
  }                                                                                                           \
  __JE T m##error_of_sum(T x, T y, T s) {                                                                     \
    T part = s - x;                                                                                           \
    T left = s - part;                                                                                        \
    T low = x - left;                                                                                         \
    T high = y - part;                                                                                        \
    return low + high;                                                                                        \
  }                                                                                                           \
  __JE T m##error_of_quotient(T x, T y, T q) {                                                                \
    T rest = fused(-q, y, x);                                                                                 \
    return y < 0 ? -rest : rest;                                                                              \
  }                                                                                                           \
  __JE T m##error_of_fused(T x, T y, T z, T f) {                                                              \
    T p = x * y;                                                                                              \
    T p_low = fused(x, y, -p);                                                                                \
    T s = z + p_low;                                                                                          \
    T s_low = m##error_of_sum(z, p_low, s);                                                                   \
    T t = p + s;                                                                                              \
    T t_low = m##error_of_sum(p, s, t);                                                                       \
    T rest = t - f;                                                                                           \
    T sum = rest + t_low;                                                                                     \
    return sum + s_low;                                                                                       \
  }                                                                                                           \
  __JE_ROUNDED(T, m, rd, root, fused)                                                                         \
  __JE_ROUNDED(T, m, ru, root, fused)                                                                         \
  __JE_ROUNDED(T, m, rz, root, fused)
#define __JE_ROUNDED(T, m, way, root, fused)                                                                  \
  __JE T m##add_##way(T x, T y) {                                                                             \
    T s = x + y;                                                                                              \
    return m##rounded_##way(s, m##error_of_sum(x, y, s));                                                     \
  }                                                                                                           \
  __JE T m##sub_##way(T x, T y) { return m##add_##way(x, -y); }                                               \
  __JE T m##mul_##way(T x, T y) {                                                                             \
    T p = x * y;                                                                                              \
    return m##rounded_##way(p, fused(x, y, -p));                                                              \
  }                                                                                                           \
  __JE T m##div_##way(T x, T y) {                                                                             \
    T q = x / y;                                                                                              \
    return m##rounded_##way(q, m##error_of_quotient(x, y, q));                                                \
  }                                                                                                           \
  __JE T m##rcp_##way(T x) { return m##div_##way((T)1, x); }                                                  \
  __JE T m##sqrt_##way(T x) {                                                                                 \
    T s = root(x);                                                                                            \
    return m##rounded_##way(s, fused(-s, s, x));                                                              \
  }                                                                                                           \
  __JE T m##fused_##way(T x, T y, T z) {                                                                      \
    T f = fused(x, y, z);                                                                                     \
    return m##rounded_##way(f, m##error_of_fused(x, y, z, f));                                                \
  }
__JE_DIRECTED(float, __f, nextafterf, sqrtf, fmaf)
__JE_DIRECTED(double, __d, nextafter, sqrt, fma)
#undef __JE_DIRECTED
#undef __JE_ROUNDED
#define __JE_FUSED(way)                                                                                       \
  __JE float __fmaf_##way(float x, float y, float z) { return __ffused_##way(x, y, z); }                      \
  __JE double __fma_##way(double x, double y, double z) { return __dfused_##way(x, y, z); }                   \
  __JE float __double2float_##way(double x) {                                                                 \
    float found = (float)x;                                                                                   \
    double error = x - (double)found;                                                                         \
    return __frounded_##way(found, error < 0 ? -1.0f : error > 0 ? 1.0f : 0.0f);                              \
  }
__JE_FUSED(rd)
__JE_FUSED(ru)
__JE_FUSED(rz)
#undef __JE_FUSED
