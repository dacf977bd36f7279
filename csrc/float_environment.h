// The floating-point environment that a kernel has in its own program.
//
// XLA's CPU threads flush denormals to zero. A legacy kernel would then compute something else than in its own program,
// so the default environment is set around every call and XLA's is put back afterwards.

#ifndef JAX_ENZYME_FLOAT_ENVIRONMENT_H_
#define JAX_ENZYME_FLOAT_ENVIRONMENT_H_

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace jax_enzyme {

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() : saved_(Read()) { Write(kDefault); }
  ~DefaultFloatEnvironment() { Write(saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__x86_64__) || defined(_M_X64)
  using Word = std::uint32_t;
  static constexpr Word kDefault = 0x1f80;  // all exceptions masked, round to nearest, denormals kept
  static Word Read() { return _mm_getcsr(); }
  static void Write(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = std::uint64_t;
  static constexpr Word kDefault = 0;
  static Word Read() {
    Word word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void Write(Word word) { __asm__ volatile("msr fpcr, %0" ::"r"(word)); }
#else
  using Word = std::uint32_t;
  static constexpr Word kDefault = 0;
  static Word Read() { return 0; }
  static void Write(Word) {}
#endif

  Word saved_;
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_FLOAT_ENVIRONMENT_H_
