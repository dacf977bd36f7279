// Assertions: one macro for device code and, over the system's declaration, for host code.
#include_next <assert.h>
#include "jax_enzyme_cuda.h"
#ifndef __linux__
extern "C" __attribute__((noreturn)) void __assert_fail(const char *, const char *, unsigned, const char *);
#endif
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __assert_fail(#condition, __FILE__, __LINE__, __func__))
#endif
