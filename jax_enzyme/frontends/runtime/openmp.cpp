// OpenMP's functions for the one thread that runs a kernel, and the members of a team that it plays (openmp_team.cpp):
// XLA has threads of its own. They never come from a library in the process, which knows of other threads. Those with a `_` are what Fortran calls without its module.
// provides: omp_(get|set|in|is|init|destroy|unset|test|fulfill)_\w+
#include <time.h>

namespace {

struct Lock {
  int held;
};

}  // namespace

extern "C" {

int je_member(void);
int je_members(void);
int je_within(void);
int je_get_threads(void);
void je_set_threads(int);

#define NUMBER(name, value) \
  int name(void) { return value; } \
  int name##_(void) { return value; }

NUMBER(omp_get_thread_num, je_member())
NUMBER(omp_get_num_threads, je_members())
NUMBER(omp_get_max_threads, je_get_threads())
NUMBER(omp_get_num_procs, 1)
NUMBER(omp_get_thread_limit, 1)
NUMBER(omp_get_level, je_within())
NUMBER(omp_get_active_level, je_members() > 1)
NUMBER(omp_get_team_num, 0)
NUMBER(omp_get_num_teams, 1)
NUMBER(omp_get_num_devices, 0)
NUMBER(omp_get_initial_device, 0)
NUMBER(omp_is_initial_device, 1)
NUMBER(omp_in_parallel, je_members() > 1)
NUMBER(omp_get_dynamic, 0)
NUMBER(omp_get_cancellation, 0)
NUMBER(omp_get_proc_bind, 0)
NUMBER(omp_get_num_places, 0)
NUMBER(omp_get_place_num, -1)
NUMBER(omp_get_max_task_priority, 0)
NUMBER(omp_get_default_device, 0)
NUMBER(omp_get_device_num, 0)
NUMBER(omp_in_final, 0)
NUMBER(omp_get_nested, 0)
NUMBER(omp_get_max_active_levels, 1)
NUMBER(omp_get_supported_active_levels, 1)
NUMBER(omp_get_max_teams, 1)
NUMBER(omp_get_teams_thread_limit, 1)

int omp_get_ancestor_thread_num(int level) { return level == 0 ? 0 : level == 1 && je_within() ? je_member() : -1; }
int omp_get_ancestor_thread_num_(const int *level) { return omp_get_ancestor_thread_num(*level); }
int omp_get_team_size(int level) { return level == 0 ? 1 : level == 1 && je_within() ? je_members() : -1; }
int omp_get_team_size_(const int *level) { return omp_get_team_size(*level); }
void omp_set_num_threads(int count) { je_set_threads(count); }
void omp_set_num_threads_(const int *count) { je_set_threads(*count); }

#define IGNORED(name) \
  void name(int) {} \
  void name##_(const int *) {}

IGNORED(omp_set_dynamic)
IGNORED(omp_set_default_device)
IGNORED(omp_set_nested)
IGNORED(omp_set_max_active_levels)
IGNORED(omp_set_num_teams)
IGNORED(omp_set_teams_thread_limit)

void omp_set_schedule(int, int) {}
void omp_set_schedule_(const int *, const int *) {}

void omp_get_schedule(int *kind, int *size) {
  *kind = 1;
  *size = 0;
}
void omp_get_schedule_(int *kind, int *size) { omp_get_schedule(kind, size); }

#define OF_LOCK(type, name, body) \
  type name(Lock *lock) { body; } \
  type name##_(Lock *lock) { body; }

OF_LOCK(void, omp_init_lock, lock->held = 0)
OF_LOCK(void, omp_destroy_lock, )
OF_LOCK(void, omp_set_lock, lock->held = 1)
OF_LOCK(void, omp_unset_lock, lock->held = 0)
OF_LOCK(int, omp_test_lock, return lock->held ? 0 : (lock->held = 1))
OF_LOCK(void, omp_init_nest_lock, lock->held = 0)
OF_LOCK(void, omp_destroy_nest_lock, )
OF_LOCK(void, omp_set_nest_lock, ++lock->held)
OF_LOCK(void, omp_unset_nest_lock, --lock->held)
OF_LOCK(int, omp_test_nest_lock, return ++lock->held)

void omp_init_lock_with_hint(Lock *lock, int) { lock->held = 0; }
void omp_init_nest_lock_with_hint(Lock *lock, int) { lock->held = 0; }
void omp_set_default_allocator(unsigned long) {}
unsigned long omp_get_default_allocator(void) { return 1; }

// A task that waits for an event is over when its code is: on one thread nobody else could bring the event about.
void omp_fulfill_event(unsigned long) {}
void omp_fulfill_event_(const unsigned long *) {}

double omp_get_wtime(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}
double omp_get_wtime_(void) { return omp_get_wtime(); }
double omp_get_wtick(void) { return 1e-9; }
double omp_get_wtick_(void) { return 1e-9; }

}  // extern "C"
