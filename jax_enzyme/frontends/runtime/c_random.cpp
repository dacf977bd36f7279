// C's random numbers, those of glibc. Their state is a variable of the file, so that it is private to a call, as a
// program's own is: each call of a kernel begins as a program does, and one that runs again for a derivative draws the
// same numbers.
// provides: s?rand s?random [dlm]rand48 srand48

namespace {

constexpr int kDegree = 31, kApart = 3, kDiscarded = 310;
unsigned table[kDegree];
int front; // 0: there is no seed yet
int back;
unsigned long long state48;

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

unsigned long long next48() { return state48 = (state48 * 0x5deece66d + 0xb) & 0xffffffffffff; }

} // namespace

extern "C" {

int rand(void) { return drawn(); }
void srand(unsigned number) { seed(number); }
long random(void) { return drawn(); }
void srandom(unsigned number) { seed(number); }

double drand48(void) { return static_cast<double>(next48()) * 0x1p-48; }
long lrand48(void) { return static_cast<long>(next48() >> 17); }
long mrand48(void) { return static_cast<int>(next48() >> 16); }
void srand48(long number) { state48 = (static_cast<unsigned long long>(number) & 0xffffffff) << 16 | 0x330e; }

} // extern "C"
