// The order that sorting finds, apart from the elements: a table of integers, so that what is differentiated moves once.
#pragma once

typedef unsigned long long u64;

namespace je {

// The stable order of `n` elements, by merging runs of growing length. `order` has room for 2 n numbers; where the
// result starts in it is returned. `after(a, b)`: element a belongs behind element b.
template <class After> inline u64 *merged(u64 *order, u64 n, After after) {
  u64 *from = order, *to = order + n;
  for (u64 i = 0; i < n; ++i) from[i] = i;
  for (u64 run = 1; run < n; run *= 2) {
    for (u64 start = 0; start < n; start += 2 * run) {
      const u64 middle = start + run < n ? start + run : n, end = start + 2 * run < n ? start + 2 * run : n;
      u64 left = start, right = middle;
      for (u64 at = start; at < end; ++at) {
        const bool take_right = left >= middle || (right < end && after(from[left], from[right]));
        to[at] = from[take_right ? right : left];
        right += take_right;
        left += !take_right;
      }
    }
    u64 *const done = to;
    to = from;
    from = done;
  }
  return from;
}

}  // namespace je
