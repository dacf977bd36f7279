// Atomic functions with an order and a scope, as CUDA 12.8 has them: of any order and scope, which is enough on the CPU;
// on a device the order is the strictest.
#pragma once

enum {
  __NV_ATOMIC_RELAXED,
  __NV_ATOMIC_CONSUME,
  __NV_ATOMIC_ACQUIRE,
  __NV_ATOMIC_RELEASE,
  __NV_ATOMIC_ACQ_REL,
  __NV_ATOMIC_SEQ_CST
};
enum {
  __NV_THREAD_SCOPE_THREAD,
  __NV_THREAD_SCOPE_BLOCK,
  __NV_THREAD_SCOPE_CLUSTER,
  __NV_THREAD_SCOPE_DEVICE,
  __NV_THREAD_SCOPE_SYSTEM
};

template <class T> __JE T __nv_atomic_load_n(const T *p, int, int = __NV_THREAD_SCOPE_SYSTEM) {
  T value;
  __atomic_load(p, &value, __ATOMIC_SEQ_CST);
  return value;
}
template <class T> __JE void __nv_atomic_load(const T *p, T *to, int, int = __NV_THREAD_SCOPE_SYSTEM) {
  __atomic_load(p, to, __ATOMIC_SEQ_CST);
}
template <class T, class U> __JE void __nv_atomic_store_n(T *p, U value, int, int = __NV_THREAD_SCOPE_SYSTEM) {
  T stored = value;
  __atomic_store(p, &stored, __ATOMIC_SEQ_CST);
}
template <class T> __JE void __nv_atomic_store(T *p, const T *value, int, int = __NV_THREAD_SCOPE_SYSTEM) {
  T stored = *value;
  __atomic_store(p, &stored, __ATOMIC_SEQ_CST);
}
template <class T, class U> __JE T __nv_atomic_exchange_n(T *p, U value, int, int = __NV_THREAD_SCOPE_SYSTEM) {
  T given = value, old;
  __atomic_exchange(p, &given, &old, __ATOMIC_SEQ_CST);
  return old;
}
template <class T, class U>
__JE bool __nv_atomic_compare_exchange_n(T *p, T *expected, U value, bool, int, int, int = __NV_THREAD_SCOPE_SYSTEM) {
  T given = value;
  return __atomic_compare_exchange(p, expected, &given, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
#define __JE_FETCH(name)                                                                          \
  template <class T, class U>                                                                     \
  __JE T __nv_atomic_fetch_##name(T *p, U value, int, int = __NV_THREAD_SCOPE_SYSTEM) {           \
    return __atomic_fetch_##name(p, (T)value, __ATOMIC_SEQ_CST);                                  \
  }                                                                                               \
  template <class T, class U> __JE void __nv_atomic_##name(T *p, U value, int, int = __NV_THREAD_SCOPE_SYSTEM) { \
    __atomic_fetch_##name(p, (T)value, __ATOMIC_SEQ_CST);                                         \
  }
__JE_FETCH(add)
__JE_FETCH(sub)
__JE_FETCH(and)
__JE_FETCH(or)
__JE_FETCH(xor)
__JE_FETCH(min)
__JE_FETCH(max)
#undef __JE_FETCH
__JE void __nv_atomic_thread_fence(int, int = __NV_THREAD_SCOPE_SYSTEM) { __threadfence_system(); }
