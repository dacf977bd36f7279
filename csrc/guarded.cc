// Calls of functions of C or C++ that may abort: a library whose assertions are on, such as llvmlite's LLVM, ends the
// process where a pass of its own goes wrong. Here that ends the call. What the call was at is lost: its memory, and
// whatever it held, which nobody may touch any more.

#include <pybind11/pybind11.h>

#include <cstdint>

#if defined(__unix__) || defined(__APPLE__)
#include <setjmp.h>
#include <signal.h>

#include <cstring>
#include <mutex>
#endif

namespace jax_enzyme {
namespace {

using Called = void (*)(void*, void*, void*);

#if defined(__unix__) || defined(__APPLE__)
// Storage that every thread has from its start: the handler must not allocate, as a thread that aborts may be at that.
#if defined(__ELF__)
__attribute__((tls_model("initial-exec")))
#endif
thread_local sigjmp_buf* t_way_out = nullptr;
struct sigaction g_before;
std::once_flag g_installed;

// C lets a handler of SIGABRT leave by a jump. Any other abort is whoever's it was before.
void Handle(int number, siginfo_t* info, void* context) {
  if (sigjmp_buf* out = t_way_out) {
    t_way_out = nullptr;
    siglongjmp(*out, 1);
  }
  if ((g_before.sa_flags & SA_SIGINFO) != 0 && g_before.sa_sigaction != nullptr) {
    g_before.sa_sigaction(number, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(number);
  } else {
    sigaction(number, &g_before, nullptr);
    raise(number);
  }
}

void Install() {
  struct sigaction action;
  std::memset(&action, 0, sizeof(action));
  action.sa_sigaction = &Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGABRT, &action, &g_before);
}

// Nothing in here has a destructor: the jump leaves no frame of ours but this one.
bool Survives(Called called, void* first, void* second, void* third) {
  std::call_once(g_installed, &Install);
  sigjmp_buf* const outer = t_way_out;
  sigjmp_buf out;
  if (sigsetjmp(out, 1) != 0) {
    t_way_out = outer;
    return false;
  }
  t_way_out = &out;
  try {
    called(first, second, third);
  } catch (...) {
    t_way_out = outer;
    throw;
  }
  t_way_out = outer;
  return true;
}
#else
bool Survives(Called called, void* first, void* second, void* third) {
  called(first, second, third);
  return true;
}
#endif

bool Call(std::uintptr_t function, std::uintptr_t first, std::uintptr_t second, std::uintptr_t third) {
  const pybind11::gil_scoped_release unlocked;
  return Survives(reinterpret_cast<Called>(function), reinterpret_cast<void*>(first), reinterpret_cast<void*>(second),
                  reinterpret_cast<void*>(third));
}

}  // namespace
}  // namespace jax_enzyme

PYBIND11_MODULE(_guarded, module) { module.def("call", &jax_enzyme::Call); }
