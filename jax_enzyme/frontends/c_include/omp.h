// OpenMP's functions. Their bodies, for the one thread that runs a kernel, are in runtime/openmp.cpp.
#pragma once

#include <stdlib.h>
#include <string.h>

typedef struct { int held; } omp_lock_t;
typedef struct { int held; } omp_nest_lock_t;
typedef enum { omp_sched_static = 1, omp_sched_dynamic, omp_sched_guided, omp_sched_auto } omp_sched_t;

// Numbers that compilers know; every one means the heap here, and larger ones memory of such an alignment.
typedef enum {
  omp_null_allocator = 0, omp_default_mem_alloc, omp_large_cap_mem_alloc, omp_const_mem_alloc, omp_high_bw_mem_alloc,
  omp_low_lat_mem_alloc, omp_cgroup_mem_alloc, omp_pteam_mem_alloc, omp_thread_mem_alloc,
  je_largest_allocator = __UINTPTR_MAX__
} omp_allocator_handle_t;
typedef enum { omp_sync_hint_none, omp_sync_hint_uncontended, omp_sync_hint_contended = 2,
  omp_sync_hint_nonspeculative = 4, omp_sync_hint_speculative = 8 } omp_sync_hint_t;
typedef omp_sync_hint_t omp_lock_hint_t;
typedef enum { omp_proc_bind_false, omp_proc_bind_true, omp_proc_bind_master, omp_proc_bind_close,
  omp_proc_bind_spread } omp_proc_bind_t;
typedef void *omp_depend_t;
typedef unsigned long omp_event_handle_t;
typedef enum { omp_default_mem_space, omp_large_cap_mem_space, omp_const_mem_space, omp_high_bw_mem_space,
  omp_low_lat_mem_space } omp_memspace_handle_t;
typedef enum { omp_atk_sync_hint = 1, omp_atk_alignment, omp_atk_access, omp_atk_pool_size, omp_atk_fallback,
  omp_atk_fb_data, omp_atk_pinned, omp_atk_partition } omp_alloctrait_key_t;
typedef enum { omp_atv_false, omp_atv_true, omp_atv_contended = 3, omp_atv_uncontended, omp_atv_serialized,
  omp_atv_sequential = omp_atv_serialized, omp_atv_private, omp_atv_all, omp_atv_thread, omp_atv_pteam, omp_atv_cgroup,
  omp_atv_default_mem_fb, omp_atv_null_fb, omp_atv_abort_fb, omp_atv_allocator_fb, omp_atv_environment, omp_atv_nearest,
  omp_atv_blocked, omp_atv_interleaved } omp_alloctrait_value_t;
#define omp_atv_default ((__UINTPTR_TYPE__)-1)
typedef struct { omp_alloctrait_key_t key; __UINTPTR_TYPE__ value; } omp_alloctrait_t;
enum { omp_initial_device = -1, omp_invalid_device = -10 };
// The host has no other runtime that a program could be told of.
typedef void *omp_interop_t;
#define omp_interop_none ((omp_interop_t)0)

#ifdef __cplusplus
extern "C" {
#endif

int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
int omp_get_num_procs(void);
int omp_get_thread_limit(void);
int omp_get_level(void);
int omp_get_active_level(void);
int omp_get_ancestor_thread_num(int level);
int omp_get_team_size(int level);
int omp_get_team_num(void);
int omp_get_num_teams(void);
int omp_get_num_devices(void);
int omp_get_initial_device(void);
int omp_is_initial_device(void);
int omp_in_parallel(void);
int omp_get_dynamic(void);
int omp_get_nested(void);
int omp_get_max_active_levels(void);
int omp_get_supported_active_levels(void);
void omp_set_num_threads(int count);
void omp_set_dynamic(int on);
void omp_set_nested(int on);
void omp_set_max_active_levels(int count);
void omp_set_schedule(omp_sched_t kind, int size);
void omp_get_schedule(omp_sched_t *kind, int *size);

void omp_init_lock(omp_lock_t *lock);
void omp_destroy_lock(omp_lock_t *lock);
void omp_set_lock(omp_lock_t *lock);
void omp_unset_lock(omp_lock_t *lock);
int omp_test_lock(omp_lock_t *lock);
void omp_init_nest_lock(omp_nest_lock_t *lock);
void omp_destroy_nest_lock(omp_nest_lock_t *lock);
void omp_set_nest_lock(omp_nest_lock_t *lock);
void omp_unset_nest_lock(omp_nest_lock_t *lock);
int omp_test_nest_lock(omp_nest_lock_t *lock);

void omp_init_lock_with_hint(omp_lock_t *lock, omp_sync_hint_t hint);
void omp_init_nest_lock_with_hint(omp_nest_lock_t *lock, omp_sync_hint_t hint);
void omp_set_default_allocator(omp_allocator_handle_t allocator);
omp_allocator_handle_t omp_get_default_allocator(void);
omp_proc_bind_t omp_get_proc_bind(void);
int omp_get_num_places(void);
int omp_get_place_num(void);
int omp_get_max_task_priority(void);
int omp_get_default_device(void);
void omp_set_default_device(int device);
int omp_get_device_num(void);
int omp_in_final(void);
int omp_get_cancellation(void);
int omp_get_max_teams(void);
int omp_get_teams_thread_limit(void);
void omp_set_num_teams(int count);
void omp_set_teams_thread_limit(int count);
void omp_fulfill_event(omp_event_handle_t event);

#ifdef __cplusplus
#define JE_DEFAULT_ALLOCATOR = omp_null_allocator
#else
#define JE_DEFAULT_ALLOCATOR
#endif
// In terms of C's, whose memory the engine knows. Older standards have no aligned_alloc.
void *je_aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__) __asm__("aligned_alloc");
#define JE_USUAL_ALIGNMENT 16u
static inline void *je_allocate(__SIZE_TYPE__ align, __SIZE_TYPE__ size) {
  return align > JE_USUAL_ALIGNMENT ? je_aligned_alloc(align, (size + align - 1) / align * align) : malloc(size);
}
static inline void *omp_aligned_alloc(__SIZE_TYPE__ align, __SIZE_TYPE__ size,
                                      omp_allocator_handle_t allocator JE_DEFAULT_ALLOCATOR) {
  return je_allocate((__SIZE_TYPE__)allocator > align ? (__SIZE_TYPE__)allocator : align, size);
}
static inline void *omp_alloc(__SIZE_TYPE__ size, omp_allocator_handle_t allocator JE_DEFAULT_ALLOCATOR) {
  return je_allocate(allocator, size);
}
static inline void *omp_calloc(__SIZE_TYPE__ count, __SIZE_TYPE__ size,
                               omp_allocator_handle_t allocator JE_DEFAULT_ALLOCATOR) {
  return allocator > JE_USUAL_ALIGNMENT ? memset(je_allocate(allocator, count * size), 0, count * size)
                                        : calloc(count, size);
}
static inline void omp_free(void *memory, omp_allocator_handle_t allocator JE_DEFAULT_ALLOCATOR) {
  (void)allocator;
  free(memory);
}
static inline void *omp_realloc(void *memory, __SIZE_TYPE__ size,
                                omp_allocator_handle_t allocator JE_DEFAULT_ALLOCATOR,
                                omp_allocator_handle_t before JE_DEFAULT_ALLOCATOR) {
  void *moved = realloc(memory, size), *aligned;
  (void)before;
  if (allocator <= JE_USUAL_ALIGNMENT) return moved;
  aligned = memcpy(je_allocate(allocator, size), moved, size);
  free(moved);
  return aligned;
}
static inline omp_allocator_handle_t omp_init_allocator(omp_memspace_handle_t space, int count,
                                                        const omp_alloctrait_t *traits) {
  __UINTPTR_TYPE__ align = omp_default_mem_alloc;
  (void)space;
  for (int i = 0; i < count; i++)
    if (traits[i].key == omp_atk_alignment && traits[i].value > JE_USUAL_ALIGNMENT) align = traits[i].value;
  return (omp_allocator_handle_t)align;
}
static inline void omp_destroy_allocator(omp_allocator_handle_t allocator) { (void)allocator; }
// The host is the only device.
static inline void *omp_target_alloc(__SIZE_TYPE__ size, int device) {
  (void)device;
  return malloc(size);
}
static inline void omp_target_free(void *memory, int device) {
  (void)device;
  free(memory);
}
static inline int omp_target_memcpy(void *to, const void *from, __SIZE_TYPE__ size, __SIZE_TYPE__ to_offset,
                                    __SIZE_TYPE__ from_offset, int to_device, int from_device) {
  (void)to_device, (void)from_device;
  memcpy((char *)to + to_offset, (const char *)from + from_offset, size);
  return 0;
}
static inline int omp_target_is_present(const void *memory, int device) {
  (void)memory, (void)device;
  return 1;
}
#undef JE_USUAL_ALIGNMENT
#undef JE_DEFAULT_ALLOCATOR

double omp_get_wtime(void);
double omp_get_wtick(void);

#ifdef __cplusplus
}
#endif
