// A batch: its dimensions, and how far apart its elements lie in each buffer.

#ifndef JAX_ENZYME_BATCH_H_
#define JAX_ENZYME_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace jax_enzyme {

struct Batch {
  std::vector<int64_t> sizes;    // outermost first; at least one
  std::vector<int64_t> strides;  // [dimension][buffer], bytes; 0 where all elements share the buffer
  int64_t total = 1;             // elements

  // The dimensions, without those of one element, and with neighbours joined that are one dimension to every buffer.
  static Batch Merged(const int64_t* sizes, const int64_t* strides, size_t dimensions, size_t buffers) {
    Batch batch;
    for (size_t d = 0; d < dimensions; ++d) {
      const int64_t* own = &strides[d * buffers];
      if (__builtin_mul_overflow(batch.total, sizes[d], &batch.total)) batch.total = INT64_MAX;
      if (sizes[d] == 1) continue;
      bool joins = !batch.sizes.empty();
      for (size_t i = 0; joins && i < buffers; ++i) {
        joins = batch.strides[batch.strides.size() - buffers + i] == own[i] * sizes[d];
      }
      if (joins) {
        batch.sizes.back() *= sizes[d];
        batch.strides.resize(batch.strides.size() - buffers);
      } else {
        batch.sizes.push_back(sizes[d]);
      }
      batch.strides.insert(batch.strides.end(), own, own + buffers);
    }
    if (batch.sizes.empty()) {
      batch.sizes.push_back(1);
      batch.strides.assign(buffers, 0);
    }
    return batch;
  }
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_BATCH_H_
