"""Code for GPUs: device functions (`ir.device`) to PTX for NVIDIA's, to code objects for AMD's.

primal        a kernel as a device function
architecture  which GPUs there is code for, and what code generation has to know of each
library       what device code calls and does not define: libdevice or ocml, and `runtime*` over it
entry         the kernels that are launched: batches, and one pointer per buffer
amd           NVVM's dialect as that of AMD's GPUs
ptx           the whole way from a device function to assembly
code_object   the same to what HIP loads; registers, spills, shared memory
ptxas         NVIDIA's assembler, where it is installed: registers, spills, shared memory
derived       derivatives, and the caches
"""
