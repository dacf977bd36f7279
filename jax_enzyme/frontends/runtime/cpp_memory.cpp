// The base of std::shared_ptr's counters, which libc++ keeps in its own binary. A kernel's pointers are of one thread.
// provides: _ZN?K?St3__1(14__shared_count|19__shared_weak_count)\w+ _ZN?K?NSt3__1(14__shared_count|19__shared_weak_count)\w+
#include <memory>

namespace std {
inline namespace __1 {

__shared_count::~__shared_count() {}
__shared_weak_count::~__shared_weak_count() {}

void __shared_weak_count::__release_weak() noexcept {
  if (__shared_weak_owners_-- == 0) __on_zero_shared_weak();
}

__shared_weak_count *__shared_weak_count::lock() noexcept {
  if (__shared_owners_ == -1) return nullptr;
  ++__shared_owners_;
  return this;
}

const void *__shared_weak_count::__get_deleter(const type_info &) const noexcept { return nullptr; }

}  // namespace __1
}  // namespace std
