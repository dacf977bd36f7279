// Numbers that are read from text: libc++ has them in its own binary, whose exceptions no `catch` of a kernel's sees.
// provides: _ZNSt3__1(4sto[ildf]|5sto(ul|ll|ld)|6stoull)ERKNS_12basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEEE\w*
// flags: -fexceptions
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

[[noreturn]] void beyond_range(const char *name) {
  char text[32];
  std::snprintf(text, sizeof(text), "%s: out of range", name);
  throw std::out_of_range(text);
}

[[noreturn]] void no_conversion(const char *name) {
  char text[32];
  std::snprintf(text, sizeof(text), "%s: no conversion", name);
  throw std::invalid_argument(text);
}

template <class Read> auto number(const char *name, const std::string &text, size_t *length, Read read) {
  const char *begin = text.c_str();
  char *end = nullptr;
  const int before = errno;
  errno = 0;
  const auto value = read(begin, &end);
  const int now = errno;
  errno = before;
  if (now == ERANGE) beyond_range(name);
  if (end == begin) no_conversion(name);
  if (length) *length = end - begin;
  return value;
}

template <class Read> auto integer(const char *name, const std::string &text, size_t *length, int base, Read read) {
  return number(name, text, length, [=](const char *begin, char **end) { return read(begin, end, base); });
}

}  // namespace

namespace std {
inline namespace __1 {

int stoi(const string &text, size_t *length, int base) {
  const long value = integer("stoi", text, length, base, strtol);
  if (value < INT_MIN || value > INT_MAX) beyond_range("stoi");
  return int(value);
}

long stol(const string &text, size_t *length, int base) { return integer("stol", text, length, base, strtol); }
long long stoll(const string &text, size_t *length, int base) { return integer("stoll", text, length, base, strtoll); }
unsigned long stoul(const string &text, size_t *length, int base) {
  return integer("stoul", text, length, base, strtoul);
}
unsigned long long stoull(const string &text, size_t *length, int base) {
  return integer("stoull", text, length, base, strtoull);
}
float stof(const string &text, size_t *length) { return number("stof", text, length, strtof); }
double stod(const string &text, size_t *length) { return number("stod", text, length, strtod); }
long double stold(const string &text, size_t *length) { return number("stold", text, length, strtold); }

}  // namespace __1
}  // namespace std
