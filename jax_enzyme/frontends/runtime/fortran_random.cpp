// Fortran's random numbers. Their state is a variable of the file, so that it is private to a call, as a program's own
// is: each call of a kernel begins as a program does, and one that runs again for a derivative draws the same numbers.
// provides: _FortranARandom(Number|Init|SeedSize|SeedPut|SeedGet|SeedDefaultPut)
#include "fortran_descriptor.h"

using namespace je;

#define LOCATION const char *, int

namespace {

// Of Lehmer's kind: from 1 to kPrime - 1, so that one integer is a seed.
constexpr u64 kPrime = 2147483647, kFirst = 1;
u64 state = kFirst;

u64 next() { return state = state * 48271 % kPrime; }

void seed(u64 number) {
    number %= kPrime;
    state = number ? number : kFirst;
}

// 53 or 24 digits, below 1.
double drawn() {
    const u64 high = next() & 0x7ffffff, low = next() & 0x3ffffff;
    return static_cast<double>(high << 26 | low) * 0x1p-53;
}
float drawn_short() { return static_cast<float>(next() >> 7 & 0xffffff) * 0x1p-24f; }

} // namespace

extern "C" {

long time(long *);
long clock(void);

void _FortranARandomNumber(const Descriptor &d, LOCATION) {
    const Extents n = extents(d);
    if (d.code == kFloat)
        each(n, [&](const Index &i) { element<float>(d, i) = drawn_short(); });
    else
        each(n, [&](const Index &i) { element<double>(d, i) = drawn(); });
}

void _FortranARandomInit(bool repeatable, bool) {
    if (repeatable)
        state = kFirst;
    else
        seed(static_cast<u64>(time(nullptr)) * 1000003 + static_cast<u64>(clock()));
}

void _FortranARandomSeedDefaultPut() { state = kFirst; }

void _FortranARandomSeedSize(const Descriptor *size, LOCATION) {
    if (size && size->base) set_integer(size->base, size->bytes, 1);
}

void _FortranARandomSeedPut(const Descriptor *put, LOCATION) {
    if (put && put->base) seed(static_cast<u64>(integer(put->base, put->bytes)));
}

void _FortranARandomSeedGet(const Descriptor *get, LOCATION) {
    if (get && get->base) set_integer(get->base, get->bytes, static_cast<i64>(state));
}

} // extern "C"
