// The memory resources of libc++, from its own source in the `ziglang` package: containers of std::pmr ask them for
// memory, which derivatives have to follow.
// provides: _ZNK?St3__13pmr\w+
#include <../src/memory_resource.cpp>
