"""CUDA kernels as functions of the CPU: what one thread does becomes what the grid does, one thread after another.

host        NVVM IR of one thread to IR of the CPU: address spaces, special registers, intrinsics, atomics
uniform     which values all threads of a group share, and where the group has to come together
group       from what one member of a group does (a lane, a warp, a thread, a block) to what the group does
accesses    a log of what every thread does to memory
lockstep    which places of shared memory the threads of a block touch, and when, followed without data
overlaps    which of these accesses are not proved apart
guarded_loops
            loops of which a range of iterations does something
lower       the whole way, from a module and a launch to a module
launches    a host function, whose launches become calls of what `lower` makes of their kernels
"""
