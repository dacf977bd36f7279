"""Kernels with checks, for Options(sanitize=True): what C leaves undefined becomes a failure of the call.

before anything is optimised, with everything inlined that is not recursive:

promises     calls of null pointers, assumptions that do not hold
allocations  Fortran's `allocate` of what is allocated already
members      structures that are returned in registers, member by member
scalars      local variables start with a pattern; reads of it are failures
lifetimes    uses of local variables whose block or function has ended
certain      those of them that cannot fail are removed
written      which reads are of what has certainly been written
arithmetic   integer divisions, shifts, conversions of floating-point numbers that have no result
provenance   which object a pointer leads to
lookup       the same at run time
versions     nests of counting loops have a version without checks, which are made in front of it
hoisting     what these checks are, in terms of `affine`, addresses that are linear in what a loop counts
counting     what a loop counts
guarded      conditions that hold at an access, as bounds of its address
apart        versions in which LLVM knows that rows of tables lie apart from what else a nest does
tables       the least and the greatest number in a table
deferred     reads of what nothing wrote in such a version, told behind it
narrow       the same of numbers of 8 and 16 bits, told by comparing runs
bounds       accesses against the bounds of their objects; memory is allocated and freed by `csrc/checked.cc`
alone        whether what a kernel allocates is its own for good
alignment    addresses that are no multiple of what their type asks for
library      what functions of the C library do to memory that they are handed
copies       memory that is copied onto itself
endings      loops look at a flag, recursive functions at their stack
insertion    where the checks go in
outside      what surrounds a call: objects, outputs that are not written; derivatives behind the checked kernel
"""
