/* Numbers of every width, complex values, vectors, bit fields. */
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef float lanes __attribute__((vector_size(16)));
typedef int masks __attribute__((vector_size(16)));

struct packed_pair {
    char tag;
    double value;
} __attribute__((packed));

struct bits {
    unsigned low : 3;
    signed middle : 11;
    unsigned long long high : 40;
};

union overlap {
    double d;
    uint64_t u;
    uint8_t bytes[8];
};

static const double table[] = {0.1, -0.0, 1e308, 1e-320, 3.141592653589793};
const float small_table[3] = {0.1f, 2.0f, -1.5f};
_Float16 half_of(_Float16 x) { return x * (_Float16)0.5 + (_Float16)0.1; }
long double extended(long double x, int n) { return powl(x, n) / 3.0L + 0.1L; }
__int128 wide(__int128 a, int64_t b) { return a * b - ((__int128)1 << 100); }
bool flag(bool a, bool b) { return a ^ b; }

double mixed(int8_t a, uint16_t b, int32_t c, uint64_t d, float e) {
    double s = a + b * 3u;
    s += (double)(c >> 3) / (c | 1) + (double)(d >> 60) - e;
    s += (int)s % 7 + (unsigned)c / 5u;
    return isnan(s) ? -s : fabs(s);
}

double complex rotate(double complex z, double angle) {
    return z * cexp(I * angle) + conj(z) / (1.0 + 2.0 * I);
}

lanes blend(lanes a, lanes b, int k) {
    masks m = a < b;
    lanes c = a * b - a / (b + 1.0f);
    c[k & 3] = a[1];
    return (lanes)((masks)c & m) + __builtin_shufflevector(a, b, 0, 5, 2, -1);
}

uint64_t float_bits(double x) {
    union overlap o = {.d = x};
    o.bytes[7] ^= 0x80;
    return o.u;
}

int fields(struct bits *b, struct packed_pair *p) {
    b->middle += 3;
    b->high = (uint64_t)p->value;
    return (int)(b->low + b->middle);
}

double lookup(int i) { return table[i % 5] + small_table[i % 3]; }

int popcount_and_friends(unsigned x, unsigned *out) {
    unsigned sum;
    if (__builtin_add_overflow(x, out[0], &sum)) return __builtin_clz(x | 1);
    out[1] = __builtin_bswap32(sum);
    return __builtin_popcount(sum) + __builtin_ctz(sum | 8);
}

void copy(double *restrict out, const double *restrict in, size_t n) {
    memcpy(out, in, n * sizeof *out);
    memmove(out + 1, out, n);
    memset(out, 0, 8);
    for (size_t i = 0; i < n; i++) out[i] = fma(in[i], 2.0, out[n - i - 1]);
}
