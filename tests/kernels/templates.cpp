// A class template with operators, a lambda that captures by reference, and a range-for over a fixed array.
#include <cmath>

namespace {

template <typename T, int N> struct Vec {
    T v[N];
    T &operator[](int i) { return v[i]; }
    T operator[](int i) const { return v[i]; }
    Vec operator*(T s) const {
        Vec r;
        for (int i = 0; i < N; i++) r[i] = v[i] * s;
        return r;
    }
    Vec &operator+=(const Vec &o) {
        for (int i = 0; i < N; i++) v[i] += o[i];
        return *this;
    }
};

} // namespace

extern "C" double templates(int n, const double *x, double scale) {
    Vec<double, 4> sum{{0, 0, 0, 0}};
    auto add = [&](const double *p) {
        Vec<double, 4> t{{p[0], p[1] * p[1], std::sin(p[2]), p[3]}};
        sum += t * scale;
    };
    for (int i = 0; i < n; i++) add(x + 4 * i);
    double out = 1;
    for (double s : sum.v) out *= s;
    return out;
}
