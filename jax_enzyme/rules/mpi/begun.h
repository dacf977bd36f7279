/* Messages, and calls of all processes, that are begun and waited for. What is under way is known to `under_way.c`
   alone, by its number: to derivatives of a derivative its functions are calls with derivatives of their own, by which
   further tangents and cotangents travel beside the first. They have bodies when no derivative follows. */

extern void RULE(begun, _beside)(const REAL *sout, REAL *sin);
extern void RULE(begun, _back)(REAL *sout, REAL *sin);
extern int RULE(begun, _number)(void);
extern void RULE(begun, _end)(int number, REAL *sout, REAL *sin);
extern void RULE(begun, _turn)(int number);
extern void RULE(begun, _order)(int incoming, int peer, int tag, handle comm);

void RULE(begun, _besidejvp)(const REAL *sout, REAL *sin, const REAL *tout, REAL *tin) {
  RULE(begun, _beside)(sout, sin);
  RULE(begun, _beside)(tout, tin);
}

void RULE(begun, _backjvp)(REAL *sout, REAL *sin, REAL *tout, REAL *tin) {
  RULE(begun, _back)(sout, sin);
  RULE(begun, _back)(tout, tin);
}

void RULE(begun, _endjvp)(int number, REAL *sout, REAL *sin, REAL *tout, REAL *tin) {
  (void)tout, (void)tin;
  RULE(begun, _end)(number, sout, sin);
}

struct je_begun {
  int number;
  REAL *sout, *sin;
};

static void *je_begun(void *arena, REAL *sout, REAL *sin) {
  struct je_begun *f = je_arena_allocate(arena, sizeof *f);
  RULE(begun, _back)(sout, sin);
  f->number = RULE(begun, _number)(), f->sout = sout, f->sin = sin;
  return f;
}

/* `of_out` and `of_in` are the shadows of what goes out and of what comes in, 0 where there is none. */
#define BEGINS(name, PARAMETERS, ARGUMENTS, SHADOWS, of_out, of_in)                                                    \
  extern void RULE(name, _start)(PARAMETERS, handle comm, handle * request);                                           \
  void RULE(name, _jvp)(PARAMETERS, handle comm, handle * request, SHADOWS) {                                          \
    RULE(name, _start)(ARGUMENTS, comm, request);                                                                      \
    RULE(begun, _beside)(of_out, of_in);                                                                               \
  }                                                                                                                    \
  void *RULE(name, _forward)(PARAMETERS, handle comm, handle * request, SHADOWS, long stable, void *arena) {           \
    (void)stable;                                                                                                      \
    RULE(name, _start)(ARGUMENTS, comm, request);                                                                      \
    return je_begun(arena, of_out, of_in);                                                                             \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) {                                                                             \
    const struct je_begun *f = frame;                                                                                  \
    RULE(begun, _end)(f->number, f->sout, f->sin);                                                                     \
  }

#define SENDS(name, function) BEGINS(name, GIVEN(MESSAGE_OUT), GIVEN(MESSAGE), REAL *sbuf, sbuf, 0)
#define RECEIVES(name, function) BEGINS(name, GIVEN(MESSAGE_IN), GIVEN(MESSAGE), REAL *sbuf, 0, sbuf)
#define SPREADS(name, function)                                                                                        \
  BEGINS(name, GIVEN(REAL *buf, int count, handle type, int root), GIVEN(buf, count, type, root), REAL *sbuf, sbuf,    \
         sbuf)
#define OF_ALL(name, kind, function, PARAMETERS, ARGUMENTS, SIDES, count, root)                                        \
  BEGINS(name, GIVEN(PARAMETERS), GIVEN(ARGUMENTS), GIVEN(REAL *sout, REAL *sin), sout, sin)
#define OF_ALL_IN_PLACE(name, kind, function, PARAMETERS, ARGUMENTS, SIDES, count, root, own)                          \
  BEGINS(name##_in_place, GIVEN(PARAMETERS), GIVEN(ARGUMENTS), REAL *sin, 0, sin)
#include "beginnings.h"

/* Requests that are waited for, or asked whether they are complete. */
#define COMPLETES(name, PARAMETERS, ARGUMENTS, completion, statuses, count)                                            \
  extern int RULE(name, _complete)(PARAMETERS, int keeps);                                                             \
  void RULE(name, _jvp)(PARAMETERS) { RULE(name, _complete)(ARGUMENTS, 0); }                                           \
  void *RULE(name, _forward)(PARAMETERS, long stable, void *arena) {                                                   \
    int *f = je_arena_allocate(arena, sizeof *f);                                                                      \
    (void)stable;                                                                                                      \
    *f = RULE(name, _complete)(ARGUMENTS, 1);                                                                          \
    return f;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { RULE(begun, _turn)(*(const int *)frame); }
#include "completions.h"

/* What blocks, as part of the order in which messages are waited for. */
static void je_in_order(int incoming, int peer, int tag, handle comm) {
  RULE(begun, _order)(incoming, peer, tag, comm);
}
static void je_all_in_order(handle comm) { RULE(begun, _order)(JE_COLLECTIVE, 0, 0, comm); }
