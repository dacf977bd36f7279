// The buffers of a call: which operand or result of the custom call holds each, and where it is.

#ifndef JAX_ENZYME_FFI_BUFFERS_H_
#define JAX_ENZYME_FFI_BUFFERS_H_

#include <cstdint>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace jax_enzyme {

struct BufferMap {
  std::vector<int32_t> arguments;  // per buffer: the operand that holds it, or -1
  std::vector<int32_t> results;    // per buffer: the result that holds it, or -1

  size_t size() const { return arguments.size(); }

  // Points `bases` at all buffers. XLA lets a result take the place of its operand; where it did not, the contents have
  // to follow: `copy(to, from, bytes)`. Every buffer is also `visit`ed: (number, address, bytes).
  template <typename Copy, typename Visit>
  xla::ffi::Error Resolve(xla::ffi::RemainingArgs args, xla::ffi::RemainingRets rets, void** bases, Copy copy,
                          Visit visit) const {
    for (size_t i = 0; i < size(); ++i) {
      void* source = nullptr;
      size_t bytes = 0;
      if (arguments[i] >= 0) {
        auto buffer = args.get<xla::ffi::AnyBuffer>(static_cast<size_t>(arguments[i]));
        if (buffer.has_error()) return buffer.error();
        source = buffer->untyped_data();
        bytes = buffer->size_bytes();
      }
      bases[i] = source;
      if (results[i] >= 0) {
        auto buffer = rets.get<xla::ffi::AnyBuffer>(static_cast<size_t>(results[i]));
        if (buffer.has_error()) return buffer.error();
        bases[i] = (*buffer)->untyped_data();
        bytes = (*buffer)->size_bytes();
        if (source != nullptr && source != bases[i]) copy(bases[i], source, bytes);
      }
      visit(i, bases[i], bytes);
    }
    return xla::ffi::Error::Success();
  }
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_FFI_BUFFERS_H_
