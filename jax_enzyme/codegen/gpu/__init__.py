"""Code for NVIDIA GPUs: device functions (`ir.device`) to PTX.

primal        a kernel as a device function
architecture  which GPUs there is code for
library       what device code calls and does not define: libdevice, and `runtime.cu` over it
entry         the kernels that are launched: batches, and one pointer per buffer
ptx           the whole way from a device function to PTX
ptxas         NVIDIA's assembler, where it is installed: registers, spills, shared memory
derived       derivatives, and the caches
"""
