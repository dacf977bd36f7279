// What compilers call for OpenMP's directives, for a team of one thread. Parallel regions, tasks and loops over chunks
// are taken apart in transform/openmp.
// provides: __kmpc_(global_thread_num|ok_to_fork|in_parallel|serialized_parallel|end_serialized_parallel)
// provides: __kmpc_(push_\w+|barrier|flush|critical|critical_with_hint|end_critical|ordered|end_ordered|doacross_\w+)
// provides: __kmpc_(master|end_master|masked|end_masked|single|end_single|copyprivate|for_static_fini|distribute_fini)
// provides: __kmpc_((dist_)?for_static_init_\w+|dispatch_(fini|deinit)\w*|reduce|reduce_nowait|end_reduce\w*)
// provides: __kmpc_(threadprivate_cached|threadprivate_register\w*|omp_task_begin_if0|omp_task_complete_if0)
// provides: __kmpc_(omp_taskwait\w*|omp_taskyield|omp_wait_deps|taskgroup|end_taskgroup)
// provides: __kmpc_(taskred_init|taskred_modifier_init|task_reduction_\w+)
// provides: __tgt_(register|unregister)_\w+
#include <stddef.h>
#include <stdint.h>

namespace {

using Id = int32_t;

// A team's only member has all iterations, in one chunk. A loop over chunks divides by the distance between two.
template <typename T, typename Signed>
void All(T lower, T upper, Signed step, int32_t *last, Signed *stride) {
  const bool any = step > 0 ? lower <= upper : lower >= upper;
  *last = any;
  const Signed span = static_cast<Signed>(upper - lower) + (step > 0 ? 1 : -1);
  *stride = any && span != 0 ? span : 1;
}

}  // namespace

extern "C" {

Id __kmpc_global_thread_num(void *) { return 0; }
int32_t __kmpc_ok_to_fork(void *) { return 1; }
int32_t __kmpc_in_parallel(void *) { return 0; }
void __kmpc_serialized_parallel(void *, Id) {}
void __kmpc_end_serialized_parallel(void *, Id) {}
void __kmpc_push_num_threads(void *, Id, int32_t) {}
void __kmpc_push_num_threads_strict(void *, Id, int32_t, int32_t, const char *) {}
void __kmpc_push_num_teams(void *, Id, int32_t, int32_t) {}
void __kmpc_push_num_teams_51(void *, Id, int32_t, int32_t, int32_t) {}
void __kmpc_push_proc_bind(void *, Id, int32_t) {}
void __kmpc_barrier(void *, Id) {}
void __kmpc_flush(void *) {}
void __kmpc_critical(void *, Id, void *) {}
void __kmpc_critical_with_hint(void *, Id, void *, int32_t) {}
void __kmpc_end_critical(void *, Id, void *) {}
void __kmpc_ordered(void *, Id) {}
void __kmpc_end_ordered(void *, Id) {}
void __kmpc_doacross_init(void *, Id, int32_t, const void *) {}
void __kmpc_doacross_wait(void *, Id, const int64_t *) {}
void __kmpc_doacross_post(void *, Id, const int64_t *) {}
void __kmpc_doacross_fini(void *, Id) {}
int32_t __kmpc_master(void *, Id) { return 1; }
void __kmpc_end_master(void *, Id) {}
int32_t __kmpc_masked(void *, Id, int32_t filter) { return filter == 0; }
void __kmpc_end_masked(void *, Id) {}
int32_t __kmpc_single(void *, Id) { return 1; }
void __kmpc_end_single(void *, Id) {}
void __kmpc_copyprivate(void *, Id, size_t, void *, void (*)(void *, void *), int32_t) {}
void __kmpc_for_static_fini(void *, Id) {}
void __kmpc_distribute_static_fini(void *, Id) {}

#define STATIC_INIT(suffix, T, Signed) \
  void __kmpc_for_static_init_##suffix(void *, Id, int32_t, int32_t *last, T *lower, T *upper, Signed *stride, \
                                       Signed step, Signed) { \
    All(*lower, *upper, step, last, stride); \
  } \
  void __kmpc_dist_for_static_init_##suffix(void *, Id, int32_t, int32_t *last, T *lower, T *upper, T *whole, \
                                            Signed *stride, Signed step, Signed) { \
    All(*lower, *upper, step, last, stride); \
    *whole = *upper; \
  } \
  void __kmpc_dispatch_fini_##suffix(void *, Id) {}

STATIC_INIT(4, int32_t, int32_t)
STATIC_INIT(4u, uint32_t, int32_t)
STATIC_INIT(8, int64_t, int64_t)
STATIC_INIT(8u, uint64_t, int64_t)

void __kmpc_dispatch_deinit(void *, Id) {}

int32_t __kmpc_reduce(void *, Id, int32_t, size_t, void *, void (*)(void *, void *), void *) { return 1; }
int32_t __kmpc_reduce_nowait(void *, Id, int32_t, size_t, void *, void (*)(void *, void *), void *) { return 1; }
void __kmpc_end_reduce(void *, Id, void *) {}
void __kmpc_end_reduce_nowait(void *, Id, void *) {}

void *__kmpc_threadprivate_cached(void *, Id, void *data, size_t, void ***) { return data; }
void __kmpc_threadprivate_register(void *, void *, void *, void *, void *) {}
void __kmpc_threadprivate_register_vec(void *, void *, void *, void *, void *, size_t) {}

void __kmpc_omp_task_begin_if0(void *, Id, void *) {}
void __kmpc_omp_task_complete_if0(void *, Id, void *) {}
int32_t __kmpc_omp_taskwait(void *, Id) { return 0; }
void __kmpc_omp_taskwait_deps_51(void *, Id, int32_t, void *, int32_t, void *, int32_t) {}
int32_t __kmpc_omp_taskyield(void *, Id, int32_t) { return 0; }
void __kmpc_omp_wait_deps(void *, Id, int32_t, void *, int32_t, void *) {}
void __kmpc_taskgroup(void *, Id) {}
void __kmpc_end_taskgroup(void *, Id) {}
void *__kmpc_taskred_init(Id, int32_t, void *) { return nullptr; }
void *__kmpc_taskred_modifier_init(void *, Id, int32_t, int32_t, void *) { return nullptr; }
void __kmpc_task_reduction_modifier_fini(void *, Id, int32_t) {}
// What tasks reduce into is the variable itself: one thread adds to it at a time.
void *__kmpc_task_reduction_get_th_data(Id, void *, void *data) { return data; }

void __tgt_register_lib(void *) {}
void __tgt_unregister_lib(void *) {}
void __tgt_register_requires(int64_t) {}

}  // extern "C"
