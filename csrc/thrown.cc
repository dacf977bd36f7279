#include "thrown.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <typeinfo>

#if defined(__unix__) || defined(__APPLE__)
#include <setjmp.h>
#endif

namespace jax_enzyme {
namespace {

// "C++ exception `std::ios_base::failure`: text", of the exception that is being handled.
std::string Describe() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "an exception of another language";
  int status = 0;
  char* readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : type->name();
  std::free(readable);
  const std::string version = "__1::";  // libc++'s
  if (const size_t at = name.find(version); at != std::string::npos) name.erase(at, version.size());
  std::string text = "C++ exception `" + name + "`";
  try {
    throw;
  } catch (const std::exception& exception) {
    text += std::string(": ") + exception.what();
  } catch (...) {
  }
  return text;
}

#if defined(__unix__) || defined(__APPLE__)
struct WayOut {
  jmp_buf place;
  std::string* thrown;
};

thread_local WayOut* t_way_out = nullptr;
std::terminate_handler g_before = nullptr;
std::once_flag g_installed;

[[noreturn]] void Leave() {
  WayOut* const out = t_way_out;
  t_way_out = nullptr;
  abi::__cxa_end_catch();
  _longjmp(out->place, 1);
}

[[noreturn]] void Terminated() {
  if (t_way_out != nullptr && std::current_exception() != nullptr) {
    *t_way_out->thrown = Describe();
    Leave();
  }
  if (g_before != nullptr) g_before();
  std::abort();
}
#endif

}  // namespace

#if defined(__unix__) || defined(__APPLE__)
// Nothing in here has a destructor: the jump leaves no frame of ours but this one.
bool Returns(Called called, void* context, std::int64_t* result, std::string* thrown) {
  std::call_once(g_installed, [] { g_before = std::set_terminate(&Terminated); });
  WayOut* const outer = t_way_out;
  WayOut out;
  out.thrown = thrown;
  if (_setjmp(out.place) != 0) {
    t_way_out = outer;
    return false;
  }
  t_way_out = &out;
  try {
    *result = called(context);
  } catch (...) {  // code of another kind, which has the tables
    t_way_out = outer;
    *thrown = Describe();
    return false;
  }
  t_way_out = outer;
  return true;
}

void LeaveKernel(const char* thrown) {
  if (t_way_out == nullptr) std::abort();
  *t_way_out->thrown = thrown;
  Leave();
}
#else
bool Returns(Called called, void* context, std::int64_t* result, std::string* thrown) {
  try {
    *result = called(context);
    return true;
  } catch (...) {
    *thrown = Describe();
    return false;
  }
}

void LeaveKernel(const char*) { throw; }
#endif

}  // namespace jax_enzyme
