// Addresses of entry points by the content key of the function they run.
//
// Nothing that JAX stores holds an address: a custom call carries the key and a recipe. The table is filled when a
// function is built; in a process that only loads a stored program it is filled by rebuilding from the recipe.

#ifndef JAX_ENZYME_KERNEL_TABLE_H_
#define JAX_ENZYME_KERNEL_TABLE_H_

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "abi.h"

namespace jax_enzyme {

class KernelTable {
 public:
  static KernelTable& Instance() {
    static KernelTable* table = new KernelTable();  // never destroyed: XLA's threads may outlive static destructors
    return *table;
  }

  void Publish(std::string key, Entry entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    entries_.insert_or_assign(std::move(key), entry);
  }

  // Null where the key is unknown.
  Entry Find(std::string_view key) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = entries_.find(std::string(key));
    return found == entries_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_KERNEL_TABLE_H_
