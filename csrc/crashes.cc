#include "crashes.h"

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#endif

namespace jax_enzyme {

#if defined(__unix__) || defined(__APPLE__)
namespace {

// Storage that every thread has from its start: the handler must not allocate.
#if defined(__ELF__)
__attribute__((tls_model("initial-exec")))
#endif
thread_local const char* t_kernel = nullptr;

struct Signal {
  int number;
  const char* name;
  const char* what;
};

constexpr Signal kSignals[] = {
    {SIGSEGV, "SIGSEGV", " accessed memory that is not there, or overflowed its stack"},
    {SIGBUS, "SIGBUS", " accessed memory that is not there"},
    {SIGFPE, "SIGFPE", " divided an integer by zero"},
    {SIGILL, "SIGILL", " ran into a trap"},
    {SIGABRT, "SIGABRT", " was aborted by a library that it calls"},
};
constexpr size_t kCount = sizeof(kSignals) / sizeof(kSignals[0]);

struct sigaction g_before[kCount];

void Write(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void WriteAddress(const void* address) {
  char text[2 + 2 * sizeof(uintptr_t) + 1];
  char* end = text + sizeof(text) - 1;
  *end = '\0';
  auto rest = reinterpret_cast<uintptr_t>(address);
  do {
    *--end = "0123456789abcdef"[rest & 15];
    rest >>= 4;
  } while (rest != 0);
  *--end = 'x';
  *--end = '0';
  Write(end);
}

// Where the thread was, as far as this is known for its kind of machine.
const void* Place(const void* context) {
#if defined(__linux__) && defined(__x86_64__)
  return reinterpret_cast<const void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__linux__) && defined(__aarch64__)
  return reinterpret_cast<const void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
  (void)context;
  return nullptr;
#endif
}

// The library that code is in, without its folder; null where it is a kernel's own, of which the loader knows nothing.
const char* LibraryOf(const void* place) {
  Dl_info found;
  if (place == nullptr || dladdr(place, &found) == 0 || found.dli_fname == nullptr) return nullptr;
  const char* slash = std::strrchr(found.dli_fname, '/');
  return slash == nullptr ? found.dli_fname : slash + 1;
}

void Report(const Signal& signal, const siginfo_t* info, const void* context) {
  const char* library = signal.number == SIGABRT ? nullptr : LibraryOf(Place(context));
  Write("jax_enzyme: kernel `");
  Write(t_kernel);
  Write("`");
  Write(signal.what);
  if (library != nullptr) {
    Write(", in ");
    Write(library);
  }
  Write(" (");
  Write(signal.name);
  if (signal.number == SIGSEGV || signal.number == SIGBUS) {
    Write(" at address ");
    WriteAddress(info->si_addr);
  }
  Write(library == nullptr ? ")." : "). If that library has said something before, it is why.");
  Write(" What to do: docs/crashes.md\n");
}

void Handle(int number, siginfo_t* info, void* context) {
  size_t index = 0;
  while (index + 1 < kCount && kSignals[index].number != number) ++index;
  if (t_kernel != nullptr) Report(kSignals[index], info, context);
  t_kernel = nullptr;  // once
  const struct sigaction& before = g_before[index];
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(number, info, context);
    return;
  }
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
    return;
  }
  // What caused the signal happens again after the return, and now has its usual end; one that was sent does not.
  sigaction(number, &before, nullptr);
  if (info->si_code <= 0) raise(number);
}

#if defined(__GLIBC__)
// A library that the kernel calls ends the process (`MPI_Abort` by way of `exit`; the kernel's own `exit` is a failure
// of the call). What would be destroyed now, other threads use, and this one comes back to nobody.
void EndInKernel(int status, void*) {
  if (t_kernel == nullptr) return;
  std::fflush(nullptr);
  Write("jax_enzyme: a library that kernel `");
  Write(t_kernel);
  Write("` calls has ended the process\n");
  _exit(status);
}
#endif

void Install() {
#if defined(__GLIBC__)
  on_exit(&EndInKernel, nullptr);
#endif
  for (size_t i = 0; i < kCount; ++i) {
    struct sigaction action;
    std::memset(&action, 0, sizeof(action));
    action.sa_sigaction = &Handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i].number, &action, &g_before[i]);
  }
}

// A stack on which the handler can run when the thread's own has overflowed.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t present;
    if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::malloc(kBytes);
    if (memory_ == nullptr) return;
    stack_t own;
    std::memset(&own, 0, sizeof(own));
    own.ss_sp = memory_;
    own.ss_size = kBytes;
    sigaltstack(&own, nullptr);
  }

  ~HandlerStack() {
    stack_t present;
    if (memory_ == nullptr || sigaltstack(nullptr, &present) != 0 || present.ss_sp != memory_) return;
    stack_t none;
    std::memset(&none, 0, sizeof(none));
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    std::free(memory_);
  }

 private:
  static constexpr size_t kBytes = 64 << 10;
  void* memory_ = nullptr;
};

std::once_flag g_installed;

}  // namespace

InKernel::InKernel(const char* name) : outer_(t_kernel) {
  if (outer_ == nullptr) {
    std::call_once(g_installed, &Install);
    static thread_local HandlerStack stack;
    (void)stack;
  }
  t_kernel = name;
}

InKernel::~InKernel() { t_kernel = outer_; }

#else

InKernel::InKernel(const char*) : outer_(nullptr) {}
InKernel::~InKernel() {}

#endif

}  // namespace jax_enzyme
