// States of handlers, as XLA has to know them.

#ifndef JAX_ENZYME_FFI_STATE_H_
#define JAX_ENZYME_FFI_STATE_H_

#include <mutex>

#include "xla/ffi/api/ffi.h"

namespace jax_enzyme {

// XLA has to know the type of a state before it accepts the handler that makes it. It asks every handler about itself
// when that is registered, which is its first call: so whoever registers the handlers has no order to keep. Every
// platform may have a registry of its own: a type of state belongs to one platform.
template <typename State>
XLA_FFI_Error* RegisterState(const XLA_FFI_CallFrame* call_frame, const char* name) {
  static std::mutex mutex;
  static const XLA_FFI_TypeInfo info = xla::ffi::MakeTypeInfo<State>();
  std::lock_guard<std::mutex> lock(mutex);
  if (State::id.type_id != XLA_FFI_UNKNOWN_TYPE_ID.type_id) return nullptr;
  return xla::ffi::Ffi::RegisterTypeId(call_frame->api, name, &State::id, &info);
}

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_FFI_STATE_H_
