// Machine code by the content key of the function that it runs, and how long it stays.
//
// Nothing that JAX stores holds an address: a custom call carries the key and a recipe. The table is filled when a
// function is built; in a process that only loads a stored program it is filled by rebuilding from the recipe. It keeps
// nothing alive: that do the executables that XLA has made, and Python for a while. What is gone is rebuilt when
// somebody asks for it.

#ifndef JAX_ENZYME_KERNEL_TABLE_H_
#define JAX_ENZYME_KERNEL_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "abi.h"

namespace jax_enzyme {

// Machine code in this process, for as long as this lives. `owner` is what is released then.
class Code {
 public:
  using Release = void (*)(void* owner);

  Code(Entry entry, void* owner, Release release) : entry_(entry), owner_(owner), release_(release) {}
  ~Code() { release_(owner_); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  Entry entry() const { return entry_; }

 private:
  Entry entry_;
  void* owner_;
  Release release_;
};

class KernelTable {
 public:
  static KernelTable& Instance() {
    static KernelTable* table = new KernelTable();  // never destroyed: XLA's threads may outlive static destructors
    return *table;
  }

  void Publish(std::string key, const std::shared_ptr<Code>& code) {
    std::lock_guard<std::mutex> lock(mutex_);
    codes_.insert_or_assign(std::move(key), code);
    if (codes_.size() < cleaned_at_) return;
    for (auto it = codes_.begin(); it != codes_.end();) it = it->second.expired() ? codes_.erase(it) : std::next(it);
    cleaned_at_ = std::max(kFew, 2 * codes_.size());
  }

  // Null where the key is unknown, or its code is gone.
  std::shared_ptr<Code> Find(std::string_view key) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = codes_.find(std::string(key));
    return found == codes_.end() ? nullptr : found->second.lock();
  }

 private:
  static constexpr size_t kFew = 256;

  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Code>> codes_;
  size_t cleaned_at_ = kFew;
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_KERNEL_TABLE_H_
