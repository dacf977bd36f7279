// Calls that run with checks: who watches their time limits, and what Ctrl-C does to them. Calls that may wait in MPI:
// where one of them has not returned a while after Ctrl-C, nothing that the program asked for can happen any more, and
// the process ends. A process that waits for a message which nobody sends is ended by nothing else but SIGKILL.

#include "checked_calls.h"

#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

namespace jax_enzyme {
namespace {

std::mutex g_calls_mutex;
std::set<RunningCall*>& Calls() {
  static auto* calls = new std::set<RunningCall*>();
  return *calls;
}
std::condition_variable& Changed() {
  static auto* changed = new std::condition_variable();
  return *changed;
}
bool g_watching = false;
std::atomic<bool> g_interrupted{false};
struct sigaction g_before;
EndsByInterrupt g_ends_by_interrupt = nullptr;

constexpr std::chrono::seconds kGrace{3};

// As Ctrl-C ends programs that do not handle it.
void End(const char* name) {
  dprintf(STDERR_FILENO,
          "jax_enzyme: kernel `%s`, which calls MPI, has not returned within %d seconds of an interrupt: the process "
          "ends\n",
          name, static_cast<int>(kGrace.count()));
  signal(SIGINT, SIG_DFL);
  raise(SIGINT);
  _exit(128 + SIGINT);
}

// Raises the flags: of all calls after Ctrl-C, of one whose time is over. Ends when no call is left.
void Watch() {
  std::unique_lock<std::mutex> lock(g_calls_mutex);
  while (!Calls().empty()) {
    const auto now = std::chrono::steady_clock::now();
    RunningCall* late = nullptr;
    for (RunningCall* call : Calls()) {
      const bool over = call->deadline <= now;
      if (call->stop == nullptr) {
        if (over) late = call;
        if (g_interrupted.load() && call->deadline == kNever) call->deadline = now + kGrace;
        continue;
      }
      if (g_interrupted.load()) call->stop->store(kInterrupted);
      if (over) call->stop->store(kTimeOut);
    }
    if (late != nullptr) {
      late->deadline = kNever;  // where the program goes on, until it is interrupted again
      g_interrupted.store(false);
      lock.unlock();
      const bool ends = g_ends_by_interrupt != nullptr && g_ends_by_interrupt();
      lock.lock();
      if (ends && Calls().count(late) != 0) End(late->name);
    }
    Changed().wait_for(lock, std::chrono::milliseconds(20));
  }
  g_watching = false;
}

void OnInterrupt(int number, siginfo_t* info, void* context) {
  g_interrupted.store(true);
  if ((g_before.sa_flags & SA_SIGINFO) != 0) {
    if (g_before.sa_sigaction != nullptr) g_before.sa_sigaction(number, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(number);
  }
}

}  // namespace

void SetEndsByInterrupt(EndsByInterrupt ends) { g_ends_by_interrupt = ends; }

void Enter(RunningCall* call, int64_t milliseconds) {
  std::lock_guard<std::mutex> lock(g_calls_mutex);
  call->deadline = kNever;
  if (milliseconds > 0) call->deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  if (Calls().empty()) {
    g_interrupted.store(false);
    struct sigaction action;
    std::memset(&action, 0, sizeof(action));
    action.sa_sigaction = &OnInterrupt;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &g_before);
  }
  Calls().insert(call);
  if (!g_watching) {
    g_watching = true;
    std::thread(&Watch).detach();
  }
}

void Leave(RunningCall* call) {
  std::lock_guard<std::mutex> lock(g_calls_mutex);
  Calls().erase(call);
  if (Calls().empty()) {
    struct sigaction present;
    sigaction(SIGINT, nullptr, &present);
    if (present.sa_sigaction == &OnInterrupt) sigaction(SIGINT, &g_before, nullptr);
  }
}

}  // namespace jax_enzyme
