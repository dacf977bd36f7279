// C's random numbers, those of glibc. Their state is a variable of the file, so that it is private to a call, as a
// program's own is: each call of a kernel begins as a program does, and one that runs again for a derivative draws the
// same numbers.
// provides: s?rand s?random initstate setstate [delmnj]rand48 s(?:rand|eed)48 lcong48
#include <stddef.h>

namespace {

constexpr int kDegree = 31, kApart = 3, kDiscarded = 310;
unsigned table[kDegree];
int front; // 0: there is no seed yet
int back;

using u64 = unsigned long long;
using Words = unsigned short[3];
constexpr u64 kFactor = 0x5deece66d, kAdded = 0xb;
u64 state48, factor = kFactor, added = kAdded;
Words before; // what seed48 took away

unsigned next() {
    const unsigned sum = table[front - 1] += table[back];
    front = front == kDegree ? 1 : front + 1;
    back = back == kDegree - 1 ? 0 : back + 1;
    return sum >> 1;
}

void seed(unsigned number) {
    int word = number ? static_cast<int>(number) : 1;
    table[0] = static_cast<unsigned>(word);
    for (int i = 1; i < kDegree; ++i) {
        word = 16807 * (word % 127773) - 2836 * (word / 127773);
        if (word < 0) word += 2147483647;
        table[i] = static_cast<unsigned>(word);
    }
    front = kApart + 1;
    back = 0;
    for (int i = 0; i < kDiscarded; ++i) next();
}

int drawn() {
    if (!front) seed(1);
    return static_cast<int>(next());
}

u64 next48() { return state48 = (state48 * factor + added) & 0xffffffffffff; }

u64 joined(const unsigned short *words) {
    return static_cast<u64>(words[2]) << 32 | static_cast<u64>(words[1]) << 16 | words[0];
}

void split(u64 number, unsigned short *words) {
    for (int i = 0; i < 3; ++i) words[i] = static_cast<unsigned short>(number >> 16 * i);
}

u64 next48(unsigned short *words) {
    const u64 number = (joined(words) * factor + added) & 0xffffffffffff;
    split(number, words);
    return number;
}

double fraction(u64 number) { return static_cast<double>(number) * 0x1p-48; }
long not_negative(u64 number) { return static_cast<long>(number >> 17); }
long any_sign(u64 number) { return static_cast<int>(number >> 16); }

void begin48(u64 number) {
    state48 = number;
    factor = kFactor;
    added = kAdded;
}

} // namespace

extern "C" {

int rand(void) { return drawn(); }
void srand(unsigned number) { seed(number); }
long random(void) { return drawn(); }
void srandom(unsigned number) { seed(number); }

// Their numbers would be those of a state that the kernel keeps itself, in ways that it may choose.
void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn));
char *initstate(unsigned, char *, size_t) { __assert_fail("`initstate` is not known: use `srandom`", "", 0, ""); }
char *setstate(char *) { __assert_fail("`setstate` is not known: use `srandom`", "", 0, ""); }

double drand48(void) { return fraction(next48()); }
long lrand48(void) { return not_negative(next48()); }
long mrand48(void) { return any_sign(next48()); }
double erand48(unsigned short *words) { return fraction(next48(words)); }
long nrand48(unsigned short *words) { return not_negative(next48(words)); }
long jrand48(unsigned short *words) { return any_sign(next48(words)); }
void srand48(long number) { begin48((static_cast<u64>(number) & 0xffffffff) << 16 | 0x330e); }
unsigned short *seed48(unsigned short *words) {
    split(state48, before);
    begin48(joined(words));
    return before;
}
void lcong48(unsigned short *words) {
    state48 = joined(words);
    factor = joined(words + 3);
    added = words[6];
}

} // extern "C"
