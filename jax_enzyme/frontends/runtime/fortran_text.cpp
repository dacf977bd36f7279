// Intrinsic procedures of characters, under the names by which flang calls them. With bodies, nothing is hidden that
// they could do to a text's address: one found in a table of names leads where it led before.
// provides: _FortranA(Index|Scan|Verify|LenTrim|CharacterCompareScalar)1 _FortranA(Trim|Adjustl|Adjustr|Repeat)
#include "fortran_descriptor.h"

using namespace je;

#define LOCATION const char *, int

namespace {

i64 length_without_blanks(const char *text, i64 length) {
  while (length > 0 && text[length - 1] == ' ') --length;
  return length;
}

bool is_among(char letter, const char *set, i64 length) {
  for (i64 i = 0; i < length; ++i)
    if (set[i] == letter) return true;
  return false;
}

// The first position, from 1, of a letter that is in the set (or is not); from behind, the last; 0 where there is none.
i64 position(const char *text, i64 length, const char *set, i64 letters, bool back, bool wanted) {
  for (i64 i = 0; i < length; ++i) {
    const i64 at = back ? length - 1 - i : i;
    if (is_among(text[at], set, letters) == wanted) return at + 1;
  }
  return 0;
}

bool is_at(const char *text, const char *part, i64 length) {
  for (i64 i = 0; i < length; ++i)
    if (text[i] != part[i]) return false;
  return true;
}

// As if the shorter one were filled with blanks.
int compare(const char *a, const char *b, i64 m, i64 n) {
  const i64 most = m > n ? m : n;
  for (i64 i = 0; i < most; ++i) {
    const u8 x = i < m ? a[i] : ' ', y = i < n ? b[i] : ' ';
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

// One text for each of another array, made by f(to, from).
template <class F> void each_text(Descriptor &result, const Descriptor &from, i64 length, F f) {
  if (from.code != kCharacter) fail("characters of more than one byte");
  const Extents n = extents(from);
  make(result, kCharacter, length, from.rank, n);
  each(n, [&](const Index &i) { f(address(result, i), address(from, i)); });
}

void fill(char *to, i64 from, i64 end) {
  for (i64 i = from; i < end; ++i) to[i] = ' ';
}

}  // namespace

extern "C" {

i64 _FortranAIndex1(const char *text, i64 length, const char *part, i64 letters, bool back) {
  const i64 starts = length - letters + 1;
  for (i64 i = 0; i < starts; ++i) {
    const i64 at = back ? starts - 1 - i : i;
    if (is_at(text + at, part, letters)) return at + 1;
  }
  return 0;
}
i64 _FortranAScan1(const char *text, i64 length, const char *set, i64 letters, bool back) {
  return position(text, length, set, letters, back, true);
}
i64 _FortranAVerify1(const char *text, i64 length, const char *set, i64 letters, bool back) {
  return position(text, length, set, letters, back, false);
}
i64 _FortranALenTrim1(const char *text, i64 length) { return length_without_blanks(text, length); }
i32 _FortranACharacterCompareScalar1(const char *a, const char *b, i64 m, i64 n) { return compare(a, b, m, n); }

void _FortranATrim(Descriptor &result, const Descriptor &text, LOCATION) {
  const i64 length = length_without_blanks(text.base, text.bytes);
  each_text(result, text, length, [=](char *to, const char *from) { __builtin_memcpy(to, from, length); });
}
void _FortranAAdjustl(Descriptor &result, const Descriptor &text, LOCATION) {
  const i64 length = text.bytes;
  each_text(result, text, length, [=](char *to, const char *from) {
    i64 blanks = 0;
    while (blanks < length && from[blanks] == ' ') ++blanks;
    __builtin_memcpy(to, from + blanks, length - blanks);
    fill(to, length - blanks, length);
  });
}
void _FortranAAdjustr(Descriptor &result, const Descriptor &text, LOCATION) {
  const i64 length = text.bytes;
  each_text(result, text, length, [=](char *to, const char *from) {
    const i64 held = length_without_blanks(from, length);
    fill(to, 0, length - held);
    __builtin_memcpy(to + (length - held), from, held);
  });
}
void _FortranARepeat(Descriptor &result, const Descriptor &text, i64 copies, LOCATION) {
  if (copies < 0) fail("REPEAT with a negative number of copies");
  const i64 length = text.bytes;
  each_text(result, text, copies * length, [=](char *to, const char *from) {
    for (i64 k = 0; k < copies; ++k) __builtin_memcpy(to + k * length, from, length);
  });
}
}
