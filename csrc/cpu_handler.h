// The CPU handler: one foreign-function target that runs every kernel and every derived function.

#ifndef JAX_ENZYME_CPU_HANDLER_H_
#define JAX_ENZYME_CPU_HANDLER_H_

#include <memory>
#include <string>
#include <string_view>

#include "kernel_table.h"
#include "xla/ffi/api/c_api.h"

namespace jax_enzyme {

// Builds the function that a recipe describes and publishes it under its key; returns null and an error text if that
// fails, or may not be: the recipe comes from outside. Called without any lock, from a thread of XLA's.
using Rebuild = std::shared_ptr<Code> (*)(std::string_view key, std::string_view recipe, std::string* error);
void SetRebuild(Rebuild rebuild);

// What jax.ffi registers: the two stages.
XLA_FFI_Error* CpuInstantiate(XLA_FFI_CallFrame* call_frame);
XLA_FFI_Error* CpuExecute(XLA_FFI_CallFrame* call_frame);

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_CPU_HANDLER_H_
