// What device code calls by the names of our header, over NVVM's intrinsics. Compiled behind `jax_enzyme_cuda.h`, which
// declares these functions, and in front of `runtime.h`.

#define DEVICE extern "C" __attribute__((device, nothrow))
#define PLAIN extern "C" __attribute__((device))

// ---- threads that meet

#define MEET extern "C" __attribute__((device, convergent, nothrow))
MEET int __je_barrier_count(int predicate) { return __nvvm_bar0_popc(predicate); }
MEET int __je_barrier_and(int predicate) { return __nvvm_bar0_and(predicate); }
MEET int __je_barrier_or(int predicate) { return __nvvm_bar0_or(predicate); }
MEET void __je_warp_sync(unsigned mask) { __nvvm_bar_warp_sync(mask); }
MEET unsigned __je_ballot(unsigned mask, int predicate) { return __nvvm_vote_ballot_sync(mask, predicate != 0); }
MEET int __je_any(unsigned mask, int predicate) { return __nvvm_vote_any_sync(mask, predicate != 0); }
MEET int __je_all(unsigned mask, int predicate) { return __nvvm_vote_all_sync(mask, predicate != 0); }
MEET unsigned __je_active_mask() {
  unsigned mask;
  __asm__ volatile("activemask.b32 %0;" : "=r"(mask));
  return mask;
}
DEVICE unsigned __je_lane() { return __nvvm_read_ptx_sreg_laneid(); }
MEET int __je_shuffle_i32(unsigned mask, int value, int source) {
  return __nvvm_shfl_sync_idx_i32(mask, value, source, 31);
}
MEET float __je_shuffle_f32(unsigned mask, float value, int source) {
  return __nvvm_shfl_sync_idx_f32(mask, value, source, 31);
}
MEET long long __je_shuffle_i64(unsigned mask, long long value, int source) {
  unsigned low = __je_shuffle_i32(mask, (int)value, source);
  int high = __je_shuffle_i32(mask, (int)(value >> 32), source);
  return (long long)high << 32 | low;
}
MEET double __je_shuffle_f64(unsigned mask, double value, int source) {
  return __longlong_as_double(__je_shuffle_i64(mask, __double_as_longlong(value), source));
}

// ---- assertions

extern "C" __attribute__((device, noreturn)) void __assertfail(const char *, const char *, unsigned, const char *, __SIZE_TYPE__);
PLAIN void __assert_fail(const char *condition, const char *file, unsigned line, const char *function) {
  __assertfail(condition, file, line, function, 1);
}
