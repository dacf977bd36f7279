// qsort and bsearch of C, for what is differentiated: the order that they find is a table of integers, and the elements
// move only once.
// provides: qsort qsort_r bsearch
#include "sorting.h"

typedef unsigned char Byte;

namespace {

void copy(Byte *to, const Byte *from, u64 size) { __builtin_memcpy(to, from, size); }

template <class Compare> void sort(void *base, u64 n, u64 size, Compare compare) {
  if (n < 2) return;
  Byte *const elements = static_cast<Byte *>(base);
  u64 *const order = static_cast<u64 *>(__builtin_malloc(2 * n * sizeof(u64)));
  Byte *const sorted = static_cast<Byte *>(__builtin_malloc(n * size));
  const u64 *const found = je::merged(order, n, [=](u64 a, u64 b) {
    return compare(elements + a * size, elements + b * size) > 0;
  });
  for (u64 i = 0; i < n; ++i) copy(sorted + i * size, elements + found[i] * size, size);
  for (u64 i = 0; i < n; ++i) copy(elements + i * size, sorted + i * size, size);
  __builtin_free(sorted);
  __builtin_free(order);
}

}  // namespace

extern "C" {

void qsort(void *base, u64 n, u64 size, int (*compare)(const void *, const void *)) { sort(base, n, size, compare); }

void qsort_r(void *base, u64 n, u64 size, int (*compare)(const void *, const void *, void *), void *context) {
  sort(base, n, size, [=](const void *a, const void *b) { return compare(a, b, context); });
}

void *bsearch(const void *key, const void *base, u64 n, u64 size, int (*compare)(const void *, const void *)) {
  const Byte *const elements = static_cast<const Byte *>(base);
  u64 low = 0, high = n;
  while (low < high) {
    const u64 middle = (low + high) / 2;
    const int order = compare(key, elements + middle * size);
    if (order == 0) return const_cast<Byte *>(elements + middle * size);
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return nullptr;
}

}  // extern "C"
