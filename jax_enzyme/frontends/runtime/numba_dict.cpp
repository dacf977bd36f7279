// The typed dictionaries of Numba (`numba.typed.Dict`), under the names by which its code calls them.
// provides: numba_dict_(new_sized|set_method_table|free|length|lookup|insert|delitem|popitem|iter|iter_next)
#include "numba_object.h"

typedef int (*Equal)(const char *, const char *);
typedef void (*Count)(const void *item);

// What is done with keys, and with keys and values whose memory is counted; null for numbers, which are compared by
// their bytes.
struct Methods {
  Equal equal;
  Count more_keys, less_keys, more_values, less_values;
};

// Entries in the order in which they came, those that were deleted in between; `slots` leads from hashes to them, by
// open addressing. Keys and values are in memory of their own, so that what they are stays to be seen.
struct Dict {
  i64 used, entries, room;
  i64 key, value;  // bytes
  Methods methods;
  i64 *hashes, *alive, *slots;
  char *keys, *values;
};

struct Iterator {
  const Dict *dict;
  i64 used, at;
};

enum Status { kOk = 0, kReplaced = 1, kMutated = -2, kExhausted = -3, kEmpty = -4 };

namespace {

char *new_bytes(i64 bytes) { return static_cast<char *>(__builtin_malloc(bytes + 1)); }
i64 *new_words(i64 count) { return static_cast<i64 *>(__builtin_malloc(count * sizeof(i64))); }
i64 slots_of(i64 room) { return 2 * room; }

// Where a hash leads at first; `room` is a power of two.
i64 start(const Dict *dict, i64 hash) {
  return static_cast<i64>(static_cast<u64>(hash) ^ (static_cast<u64>(hash) >> 32)) & (slots_of(dict->room) - 1);
}

i64 after(const Dict *dict, i64 slot) { return (slot + 1) & (slots_of(dict->room) - 1); }

void put_slot(Dict *dict, i64 hash, i64 entry) {
  i64 slot = start(dict, hash);
  while (dict->slots[slot] >= 0) slot = after(dict, slot);
  dict->slots[slot] = entry;
}

void take_room(Dict *dict, i64 room) {
  dict->room = room;
  dict->hashes = new_words(room);
  dict->alive = new_words(room);
  dict->slots = new_words(slots_of(room));
  dict->keys = new_bytes(room * dict->key);
  dict->values = new_bytes(room * dict->value);
  for (i64 i = 0; i < slots_of(room); ++i) dict->slots[i] = -1;
}

void give_back(Dict *dict) {
  __builtin_free(dict->hashes);
  __builtin_free(dict->alive);
  __builtin_free(dict->slots);
  __builtin_free(dict->keys);
  __builtin_free(dict->values);
}

void grow(Dict *dict) {
  Dict old = *dict;
  take_room(dict, 2 * old.room);
  for (i64 i = 0; i < old.entries; ++i) {
    dict->hashes[i] = old.hashes[i];
    dict->alive[i] = old.alive[i];
    put_slot(dict, old.hashes[i], i);
  }
  __builtin_memcpy(dict->keys, old.keys, old.entries * old.key);
  __builtin_memcpy(dict->values, old.values, old.entries * old.value);
  give_back(&old);
}

bool same(const Dict *dict, const char *a, const char *b) {
  return dict->methods.equal ? dict->methods.equal(a, b) > 0 : __builtin_memcmp(a, b, dict->key) == 0;
}

i64 found(const Dict *dict, const char *key, i64 hash) {
  for (i64 slot = start(dict, hash); dict->slots[slot] >= 0; slot = after(dict, slot)) {
    const i64 entry = dict->slots[slot];
    if (dict->alive[entry] && dict->hashes[entry] == hash && same(dict, dict->keys + entry * dict->key, key))
      return entry;
  }
  return -1;
}

void remove(Dict *dict, i64 entry) {
  dict->alive[entry] = 0;
  --dict->used;
}

void done_with(Count less, const char *item) {
  if (less) less(item);
}

}  // namespace

extern "C" {

int numba_dict_new_sized(Dict **out, i64 count, i64 key, i64 value) {
  Dict *const dict = static_cast<Dict *>(__builtin_malloc(sizeof(Dict)));
  i64 room = 8;
  while (room < count) room *= 2;
  dict->used = dict->entries = 0;
  dict->key = key;
  dict->value = value;
  dict->methods = {};
  take_room(dict, room);
  *out = dict;
  return kOk;
}

void numba_dict_set_method_table(Dict *dict, const Methods *methods) { dict->methods = *methods; }
i64 numba_dict_length(const Dict *dict) { return dict->used; }

void numba_dict_free(Dict *dict) {
  if (dict->methods.less_keys || dict->methods.less_values)
    for (i64 i = 0; i < dict->entries; ++i)
      if (dict->alive[i]) {
        done_with(dict->methods.less_keys, dict->keys + i * dict->key);
        done_with(dict->methods.less_values, dict->values + i * dict->value);
      }
  give_back(dict);
  __builtin_free(dict);
}

i64 numba_dict_lookup(const Dict *dict, const char *key, i64 hash, char *value) {
  const i64 entry = found(dict, key, hash);
  if (entry >= 0) __builtin_memcpy(value, dict->values + entry * dict->value, dict->value);
  return entry;
}

int numba_dict_insert(Dict *dict, const char *key, i64 hash, const char *value, char *old) {
  i64 entry = found(dict, key, hash);
  const bool known = entry >= 0;
  if (!known) {
    if (dict->entries == dict->room) grow(dict);
    entry = dict->entries++;
    ++dict->used;
    dict->hashes[entry] = hash;
    dict->alive[entry] = 1;
    put_slot(dict, hash, entry);
    __builtin_memcpy(dict->keys + entry * dict->key, key, dict->key);
    if (dict->methods.more_keys) dict->methods.more_keys(key);
  }
  char *const place = dict->values + entry * dict->value;
  if (known) {
    done_with(dict->methods.less_values, place);
    __builtin_memcpy(old, place, dict->value);
  }
  __builtin_memcpy(place, value, dict->value);
  if (dict->methods.more_values) dict->methods.more_values(place);
  return known ? kReplaced : kOk;
}

int numba_dict_delitem(Dict *dict, i64, i64 entry) {
  done_with(dict->methods.less_keys, dict->keys + entry * dict->key);
  done_with(dict->methods.less_values, dict->values + entry * dict->value);
  remove(dict, entry);
  return kOk;
}

int numba_dict_popitem(Dict *dict, char *key, char *value) {
  for (i64 entry = dict->entries - 1; entry >= 0; --entry)
    if (dict->alive[entry]) {
      __builtin_memcpy(key, dict->keys + entry * dict->key, dict->key);
      __builtin_memcpy(value, dict->values + entry * dict->value, dict->value);
      remove(dict, entry);
      return kOk;
    }
  return kEmpty;
}

void numba_dict_iter(Iterator *iterator, const Dict *dict) { *iterator = {dict, dict->used, 0}; }

int numba_dict_iter_next(Iterator *iterator, const char **key, const char **value) {
  const Dict *const dict = iterator->dict;
  if (dict->used != iterator->used) return kMutated;
  while (iterator->at < dict->entries) {
    const i64 entry = iterator->at++;
    if (!dict->alive[entry]) continue;
    *key = dict->keys + entry * dict->key;
    *value = dict->values + entry * dict->value;
    return kOk;
  }
  return kExhausted;
}

}  // extern "C"
