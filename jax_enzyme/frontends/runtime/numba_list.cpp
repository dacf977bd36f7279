// The typed lists of Numba (`numba.typed.List`), under the names by which its code calls them.
// provides: numba_list_(set_method_table|new|free|base_ptr|size_address|length|allocated|is_mutable|set_is_mutable)
// provides: numba_list_(setitem|append|delitem|delete_slice)
#include "numba_object.h"

typedef void (*Count)(const void *item);

// What is done with an item whose memory is counted; null for numbers.
struct Methods {
  Count more, less;
};

struct List {
  i64 size, item, room;
  i64 is_mutable;
  Methods methods;
  char *items;
};

enum Status { kOk = 0, kIndex = -1, kMutated = -3, kImmutable = -5 };

namespace {

void more(const List *list, const char *item) {
  if (list->methods.more) list->methods.more(item);
}

void less(const List *list, const char *item) {
  if (list->methods.less) list->methods.less(item);
}

// Memory for `count` items: new, twice as much as there was, so that what an item is stays to be seen.
void grow(List *list, i64 count) {
  if (count <= list->room) return;
  const i64 room = 2 * count;
  char *const items = static_cast<char *>(__builtin_malloc(room * list->item));
  __builtin_memcpy(items, list->items, list->size * list->item);
  __builtin_free(list->items);
  list->items = items;
  list->room = room;
}

}  // namespace

extern "C" {

int numba_list_new(List **out, i64 item, i64 room) {
  List *const list = static_cast<List *>(__builtin_malloc(sizeof(List)));
  list->size = 0;
  list->item = item;
  list->room = room;
  list->is_mutable = 1;
  list->methods = {nullptr, nullptr};
  list->items = static_cast<char *>(__builtin_malloc(room * item + 1));
  *out = list;
  return kOk;
}

void numba_list_free(List *list) {
  if (list->methods.less)
    for (i64 i = 0; i < list->size; ++i) less(list, list->items + i * list->item);
  __builtin_free(list->items);
  __builtin_free(list);
}

void numba_list_set_method_table(List *list, const Methods *methods) { list->methods = *methods; }
char *numba_list_base_ptr(List *list) { return list->items; }
i64 *numba_list_size_address(List *list) { return &list->size; }
i64 numba_list_length(const List *list) { return list->size; }
i64 numba_list_allocated(const List *list) { return list->room; }
int numba_list_is_mutable(const List *list) { return list->is_mutable != 0; }
void numba_list_set_is_mutable(List *list, int is_mutable) { list->is_mutable = is_mutable; }

int numba_list_setitem(List *list, i64 index, const char *item) {
  if (!list->is_mutable) return kImmutable;
  if (index < 0 || index >= list->size) return kIndex;
  char *const place = list->items + index * list->item;
  less(list, place);
  __builtin_memcpy(place, item, list->item);
  more(list, place);
  return kOk;
}

int numba_list_append(List *list, const char *item) {
  if (!list->is_mutable) return kImmutable;
  grow(list, list->size + 1);
  char *const place = list->items + list->size * list->item;
  __builtin_memcpy(place, item, list->item);
  more(list, place);
  ++list->size;
  return kOk;
}

int numba_list_delitem(List *list, i64 index) {
  if (!list->is_mutable) return kImmutable;
  if (index < 0 || index >= list->size) return kIndex;
  char *const place = list->items + index * list->item;
  less(list, place);
  --list->size;
  __builtin_memmove(place, place + list->item, (list->size - index) * list->item);
  return kOk;
}

int numba_list_delete_slice(List *list, i64 start, i64 stop, i64 step) {
  if (!list->is_mutable) return kImmutable;
  const i64 count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (count <= 0) return kOk;
  // From the lowest on, in steps upwards.
  const i64 first = step > 0 ? start : start + (count - 1) * step, stride = step > 0 ? step : -step;
  i64 kept = first;
  for (i64 i = first; i < list->size; ++i) {
    char *const item = list->items + i * list->item;
    const i64 behind = i - first;
    if (behind % stride == 0 && behind / stride < count)
      less(list, item);
    else
      __builtin_memmove(list->items + kept++ * list->item, item, list->item);
  }
  list->size = kept;
  return kOk;
}

}  // extern "C"
