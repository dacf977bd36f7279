// Exceptions that a library throws into the code of a kernel, which has no tables for unwinding.
//
// The C++ run time finds nobody who catches such an exception and ends the process, before anything has been unwound.
// Here that ends the call, with what was thrown. What the frames left behind held is lost: memory of the kernel's and
// the library's.

#ifndef JAX_ENZYME_THROWN_H_
#define JAX_ENZYME_THROWN_H_

#include <cstdint>
#include <string>

namespace jax_enzyme {

using Called = std::int64_t (*)(void* context);

// Calls it. False where an exception left it; `thrown` is then its type and text.
bool Returns(Called called, void* context, std::int64_t* result, std::string* thrown);

// Ends the innermost such call of this thread: what it returns is false, and `thrown` this. Called where an exception
// is handled, in a function that has nothing else to destroy; what lies between it and that call is the kernel's code.
[[noreturn]] void LeaveKernel(const char* thrown);

template <typename Call>
bool Returns(const Call& call, std::int64_t* result, std::string* thrown) {
  const Called called = [](void* context) { return (*static_cast<const Call*>(context))(); };
  return Returns(called, const_cast<Call*>(&call), result, thrown);
}

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_THROWN_H_
