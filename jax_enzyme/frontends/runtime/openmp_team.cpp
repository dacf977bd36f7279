// What compilers call for OpenMP's directives, for one member of a team. Parallel regions, tasks and loops over chunks
// are taken apart in transform/openmp. A team has one member, number 0, but for regions that ask for their thread: those
// have as many as they want, and `je_member`, `je_members` and `je_meet` are told what they are there
// (transform/openmp/teams.py).
// provides: je_(member|members|meet|slot|within|threads|most|most_ranges|team_size|set_threads|get_threads)
// provides: __kmpc_(global_thread_num|ok_to_fork|in_parallel|serialized_parallel|end_serialized_parallel)
// provides: __kmpc_(push_\w+|barrier|flush|critical|critical_with_hint|end_critical|ordered|end_ordered|doacross_\w+)
// provides: __kmpc_(master|end_master|masked|end_masked|single|end_single|copyprivate|for_static_fini|distribute_fini)
// provides: __kmpc_((dist_)?for_static_init_\w+|dispatch_(fini|deinit)\w*|reduce|reduce_nowait|end_reduce\w*)
// provides: __kmpc_(threadprivate_cached|threadprivate_register\w*|omp_task_begin_if0|omp_task_complete_if0)
// provides: __kmpc_(omp_taskwait\w*|omp_taskyield|omp_wait_deps|taskgroup|end_taskgroup)
// provides: __kmpc_(task_allow_completion_event|taskred_init|taskred_modifier_init|task_reduction_\w+)
// provides: __kmpc_(alloc|aligned_alloc|free|error)
// provides: __tgt_(register|unregister|interop)_\w+
#include <stddef.h>
#include <stdint.h>

namespace {

using Id = int32_t;

constexpr int kChunked = 33, kDistributeChunks = 91, kDistribute = 92, kKinds = 0xFFFF;
constexpr int kFatal = 2;

int pushed, wanted;  // by num_threads(...), by omp_set_num_threads
void *copied;        // by `single copyprivate`

// Who has all iterations has them in one chunk. A loop over chunks divides by the distance between two.
template <typename T, typename Signed>
void All(T lower, T upper, Signed step, int32_t *last, Signed *stride) {
  const bool any = step > 0 ? lower <= upper : lower >= upper;
  *last = any;
  const Signed span = static_cast<Signed>(upper - lower) + (step > 0 ? 1 : -1);
  *stride = any && span != 0 ? span : 1;
}

}  // namespace

extern "C" {

// Weak, so that nothing is concluded from a body that is not the last word.
#define REPLACED __attribute__((weak))

REPLACED int je_member(void) { return 0; }
REPLACED int je_members(void) { return 1; }
REPLACED int je_slot(void) { return 0; }    // of memory that each thread has of its own
REPLACED int je_within(void) { return 0; }  // Is this in a region that has a team?
REPLACED int je_threads(void) { return 1; }
REPLACED int je_most(void) { return 1; }
REPLACED void je_meet(void) {}
REPLACED int64_t je_most_ranges(void) { return 64; }  // of a loop (transform/openmp/reductions.py)

void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn));

void je_set_threads(int count) { wanted = count; }
int je_get_threads(void) { return wanted > 0 ? wanted : je_threads(); }

// How many members the team of the next region wants; in a region that has a team, one.
int je_team_size(void) {
  const int count = pushed > 0 ? pushed : je_get_threads();
  pushed = 0;
  if (je_within()) return 1;
  if (je_most() > 1 && count > je_most()) {
    __assert_fail("a region that asks for its thread, and how many only the run knows, has 64 at most", "", 0, "");
  }
  return count;
}

}  // extern "C"

namespace {

// The member's iterations, as LLVM's run-time library shares them out (openmp/runtime/src/kmp_sched.cpp): chunks in
// turn, or one range each, those of the first members longer by one where they do not divide. A loop over chunks of one
// iteration may be that over iterations: it gets one at a time.
template <typename T, typename Signed>
void Share(int32_t schedule, T *lower, T *upper, Signed step, Signed chunk, int32_t *last, Signed *stride) {
  const int members = je_members(), kind = schedule & kKinds;
  if ((members == 1 && !(kind == kChunked && chunk == 1)) || kind == kDistributeChunks || kind == kDistribute) {
    All(*lower, *upper, step, last, stride);
    return;
  }
  *last = 0;
  *stride = 1;
  if (step > 0 ? *lower > *upper : *lower < *upper) return;
  using Count = uint64_t;
  const Count count = step > 0 ? static_cast<Count>(*upper - *lower) / static_cast<Count>(step) + 1
                               : static_cast<Count>(*lower - *upper) / static_cast<Count>(-step) + 1;
  const Count member = je_member(), all = members;
  if (kind == kChunked) {
    if (chunk < 1) chunk = 1;
    const Signed span = chunk * step;
    *last = member == (count - 1) / chunk % all;
    *stride = span * static_cast<Signed>(all);
    *lower += span * static_cast<Signed>(member);
    *upper = *lower + span - step;
    return;
  }
  const Count each = count / all, more = count % all;
  const Count begin = member * each + (member < more ? member : more), length = each + (member < more);
  *stride = static_cast<Signed>(count) * step;
  *last = length > 0 && begin + length == count;
  *lower += step * static_cast<Signed>(begin);
  *upper = *lower + step * static_cast<Signed>(length) - step;
}

}  // namespace

extern "C" {

Id __kmpc_global_thread_num(void *) { return je_member(); }
int32_t __kmpc_ok_to_fork(void *) { return 1; }
int32_t __kmpc_in_parallel(void *) { return je_members() > 1; }
void __kmpc_serialized_parallel(void *, Id) {}
void __kmpc_end_serialized_parallel(void *, Id) {}
void __kmpc_push_num_threads(void *, Id, int32_t count) { pushed = count; }
void __kmpc_push_num_threads_strict(void *, Id, int32_t count, int32_t, const char *) { pushed = count; }
void __kmpc_push_num_teams(void *, Id, int32_t, int32_t) {}
void __kmpc_push_num_teams_51(void *, Id, int32_t, int32_t, int32_t) {}
void __kmpc_push_proc_bind(void *, Id, int32_t) {}
void __kmpc_barrier(void *, Id) { je_meet(); }
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
int32_t __kmpc_master(void *, Id) { return je_member() == 0; }
void __kmpc_end_master(void *, Id) {}
int32_t __kmpc_masked(void *, Id, int32_t filter) { return filter == je_member(); }
void __kmpc_end_masked(void *, Id) {}
int32_t __kmpc_single(void *, Id) { return je_member() == 0; }
void __kmpc_end_single(void *, Id) {}
void __kmpc_copyprivate(void *, Id, size_t, void *data, void (*copy)(void *, void *), int32_t had_it) {
  if (je_members() == 1) return;
  copied = had_it ? data : copied;  // of a branch and a meeting behind it an optimiser could make two meetings
  je_meet();
  if (!had_it) copy(data, copied);
  je_meet();
}
void __kmpc_for_static_fini(void *, Id) {}
void __kmpc_distribute_static_fini(void *, Id) {}

#define STATIC_INIT(suffix, T, Signed) \
  void __kmpc_for_static_init_##suffix(void *, Id, int32_t schedule, int32_t *last, T *lower, T *upper, \
                                       Signed *stride, Signed step, Signed chunk) { \
    Share(schedule, lower, upper, step, chunk, last, stride); \
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
void __kmpc_end_reduce(void *, Id, void *) { je_meet(); }
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
void *__kmpc_task_allow_completion_event(void *, Id, void *task) { return task; }
void __kmpc_taskgroup(void *, Id) {}
void __kmpc_end_taskgroup(void *, Id) {}
void *__kmpc_taskred_init(Id, int32_t, void *) { return nullptr; }
void *__kmpc_taskred_modifier_init(void *, Id, int32_t, int32_t, void *) { return nullptr; }
void __kmpc_task_reduction_modifier_fini(void *, Id, int32_t) {}
// What tasks reduce into is the variable itself: one thread adds to it at a time.
void *__kmpc_task_reduction_get_th_data(Id, void *, void *data) { return data; }

void *malloc(size_t);
void *aligned_alloc(size_t, size_t);
void free(void *);
// An allocator is a number: the alignment that it was made for, or one of those that OpenMP has names for (omp.h).
void *__kmpc_aligned_alloc(Id, size_t align, size_t size, void *allocator) {
  const size_t own = reinterpret_cast<size_t>(allocator);
  align = own > align ? own : align;
  return align > 16 ? aligned_alloc(align, (size + align - 1) / align * align) : malloc(size);
}
void *__kmpc_alloc(Id id, size_t size, void *allocator) { return __kmpc_aligned_alloc(id, 0, size, allocator); }
void __kmpc_free(Id, void *memory, void *) { free(memory); }

// The directive `error`, where control comes to it.
int dprintf(int, const char *, ...);
void __kmpc_error(void *, int32_t severity, const char *message) {
  if (severity == kFatal) __assert_fail(message ? message : "error", "", 0, "");
  dprintf(2, "OMP: Warning: %s\n", message ? message : "");
}

void __tgt_register_lib(void *) {}
void __tgt_unregister_lib(void *) {}
void __tgt_register_requires(int64_t) {}

// The host has no other runtime, so there is nothing that `interop` could tell of, and nothing to wait for.
void __tgt_interop_init(void *, Id, void **interop, int32_t, int32_t, int32_t, void *, int32_t) { *interop = nullptr; }
void __tgt_interop_use(void *, Id, void **, int32_t, int32_t, void *, int32_t) {}
void __tgt_interop_destroy(void *, Id, void **interop, int32_t, int32_t, void *, int32_t) { *interop = nullptr; }

}  // extern "C"
