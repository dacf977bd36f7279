// The handler for GPUs: one foreign-function target that launches every kernel and every derived kernel.

#ifndef JAX_ENZYME_GPU_HANDLER_H_
#define JAX_ENZYME_GPU_HANDLER_H_

#include "xla/ffi/api/c_api.h"

namespace jax_enzyme {

// What jax.ffi registers for platforms CUDA and ROCM: the three stages, of which the
// first tells which driver it is. They launch on XLA's stream, on the device of
// the call.
XLA_FFI_Error* GpuInstantiate(XLA_FFI_CallFrame* call_frame);
XLA_FFI_Error* RocmInstantiate(XLA_FFI_CallFrame* call_frame);
XLA_FFI_Error* GpuInitialize(XLA_FFI_CallFrame* call_frame);
XLA_FFI_Error* GpuExecute(XLA_FFI_CallFrame* call_frame);

// Execution of kernels whose tape has a size that only the run tells: a kernel that counts goes before, and its result
// is waited for. It cannot be recorded into a command buffer, and does not say that it could.
XLA_FFI_Error* GpuCountAndExecute(XLA_FFI_CallFrame* call_frame);

// The same for platform Host, where there are neither streams nor devices: device 0, the null stream, and the buffers
// of the host. With a library in the place of the driver it runs where there is no GPU; nothing but tests registers it.
XLA_FFI_Error* GpuOnHostInstantiate(XLA_FFI_CallFrame* call_frame);
XLA_FFI_Error* RocmOnHostInstantiate(XLA_FFI_CallFrame* call_frame);
XLA_FFI_Error* GpuOnHostInitialize(XLA_FFI_CallFrame* call_frame);
XLA_FFI_Error* GpuOnHostExecute(XLA_FFI_CallFrame* call_frame);
XLA_FFI_Error* GpuOnHostCountAndExecute(XLA_FFI_CallFrame* call_frame);

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_GPU_HANDLER_H_
