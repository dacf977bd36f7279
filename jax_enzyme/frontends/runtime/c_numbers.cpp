// strtod of C, for who wants to know where the number ends: that is an address within the text, which rules for calls
// cannot say. What the number is, the C library says.
// provides: strtod

extern "C" double atof(const char *);

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool hexadecimal(char c) { return digit(c) || (lower(c) >= 'a' && lower(c) <= 'f'); }

// Behind a word in any letters, or null.
const char *behind(const char *text, const char *word) {
  for (; *word; ++text, ++word)
    if (lower(*text) != *word) return nullptr;
  return text;
}

// Behind an exponent, or where it would begin.
const char *behind_exponent(const char *text, char letter) {
  if (lower(*text) != letter) return text;
  const char *at = text + 1;
  if (*at == '+' || *at == '-') ++at;
  if (!digit(*at)) return text;
  while (digit(*at)) ++at;
  return at;
}

template <class Digit> const char *behind_digits(const char *text, Digit is_digit) {
  bool any = false;
  const char *at = text;
  for (; is_digit(*at); ++at) any = true;
  if (*at == '.')
    for (++at; is_digit(*at); ++at) any = true;
  return any ? at : nullptr;
}

// C11 7.22.1.3: behind the number that a text begins with, or null.
const char *behind_number(const char *text) {
  while (*text == ' ' || (*text >= '\t' && *text <= '\r')) ++text;
  if (*text == '+' || *text == '-') ++text;
  if (const char *at = behind(text, "inf")) {
    const char *whole = behind(at, "inity");
    return whole ? whole : at;
  }
  if (const char *at = behind(text, "nan")) {
    if (*at != '(') return at;
    const char *in = at + 1;
    while (*in == '_' || digit(*in) || (lower(*in) >= 'a' && lower(*in) <= 'z')) ++in;
    return *in == ')' ? in + 1 : at;
  }
  if (*text == '0' && lower(text[1]) == 'x')
    if (const char *at = behind_digits(text + 2, hexadecimal)) return behind_exponent(at, 'p');
  const char *at = behind_digits(text, digit);
  return at ? behind_exponent(at, 'e') : nullptr;
}

}  // namespace

extern "C" double strtod(const char *text, char **end) {
  const char *at = behind_number(text);
  if (end) *end = const_cast<char *>(at ? at : text);
  return at ? atof(text) : 0;
}
