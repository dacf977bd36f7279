// What libc++ keeps in its own binary and small kernels use: clocks, locks, how many threads there are, numbers as text,
// sizes of hash tables. A kernel's objects belong to one thread.
// provides: _ZNSt3__16chrono12(steady|system)_clock3nowEv _ZNSt3__1(5mutex|15recursive_mutex)(4lock|6unlock|8try_lock)Ev
// provides: _ZNSt3__115recursive_mutex[CD][12]Ev _ZNSt3__111__call_onceERVmPvPFvS2_E _ZNSt3__112__next_primeEm
// provides: _ZNSt3__19to_stringE[ijlmxyfde] _ZNSt3__16thread20hardware_concurrencyEv
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <time.h>

namespace std {
inline namespace __1 {

static long long time_of(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

chrono::steady_clock::time_point chrono::steady_clock::now() noexcept {
  return time_point(duration(time_of(CLOCK_MONOTONIC)));
}

chrono::system_clock::time_point chrono::system_clock::now() noexcept {
  return time_point(duration(time_of(CLOCK_REALTIME) / 1000));
}

void mutex::lock() {}
void mutex::unlock() noexcept {}
bool mutex::try_lock() noexcept { return true; }

recursive_mutex::recursive_mutex() {}
recursive_mutex::~recursive_mutex() {}
void recursive_mutex::lock() {}
void recursive_mutex::unlock() noexcept {}
bool recursive_mutex::try_lock() noexcept { return true; }

void __call_once(volatile once_flag::_State_type &flag, void *argument, void (*function)(void *)) {
  if (flag) return;
  function(argument);
  flag = ~once_flag::_State_type(0);
}

// Not <thread>, which is long: what it declares is not used here.
class thread {
 public:
  static unsigned hardware_concurrency() noexcept;
};

unsigned thread::hardware_concurrency() noexcept { return 1; }  // as omp_get_num_procs

size_t __next_prime(size_t n) {
  if (n <= 2) return n ? 2 : 0;
  for (n |= 1;; n += 2) {
    size_t divisor = 3;
    while (divisor * divisor <= n && n % divisor) divisor += 2;
    if (divisor * divisor > n) return n;
  }
}

template <class T> static string shown(const char *format, T value) {
  char text[400];
  const int length = snprintf(text, sizeof(text), format, value);
  return string(text, length);
}

string to_string(int value) { return shown("%d", value); }
string to_string(long value) { return shown("%ld", value); }
string to_string(long long value) { return shown("%lld", value); }
string to_string(unsigned value) { return shown("%u", value); }
string to_string(unsigned long value) { return shown("%lu", value); }
string to_string(unsigned long long value) { return shown("%llu", value); }
string to_string(float value) { return shown("%f", value); }
string to_string(double value) { return shown("%f", value); }

}  // namespace __1
}  // namespace std
