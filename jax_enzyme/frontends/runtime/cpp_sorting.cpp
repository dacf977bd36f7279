// std::sort of numbers: libc++ keeps the instances for built-in types in its own binary.
// provides: _ZNSt3__16__sortIRNS_6__lessI\w+
#include "sorting.h"

namespace std {
inline namespace __1 {

template <class T, class U = T> struct __less {};

template <class Compare, class Iterator> void __sort(Iterator first, Iterator last, Compare) {
  const u64 n = last - first;
  if (n < 2) return;
  u64 *const order = static_cast<u64 *>(__builtin_malloc(2 * n * sizeof(u64)));
  Iterator const sorted = static_cast<Iterator>(__builtin_malloc(n * sizeof(*first)));
  const u64 *const found = je::merged(order, n, [=](u64 a, u64 b) { return first[b] < first[a]; });
  for (u64 i = 0; i < n; ++i) sorted[i] = first[found[i]];
  for (u64 i = 0; i < n; ++i) first[i] = sorted[i];
  __builtin_free(sorted);
  __builtin_free(order);
}

#define INSTANCE(T) template void __sort<__less<T> &, T *>(T *, T *, __less<T> &);
INSTANCE(char)
INSTANCE(signed char)
INSTANCE(unsigned char)
INSTANCE(wchar_t)
INSTANCE(short)
INSTANCE(unsigned short)
INSTANCE(int)
INSTANCE(unsigned)
INSTANCE(long)
INSTANCE(unsigned long)
INSTANCE(long long)
INSTANCE(unsigned long long)
INSTANCE(float)
INSTANCE(double)

}  // namespace __1
}  // namespace std
