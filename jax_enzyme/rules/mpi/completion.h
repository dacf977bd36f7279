/* Waited for, or asked whether they are complete: requests, by any of MPI's functions, each of which says which ones. */

struct je_completion {
  int many, *which; /* places in `requests` */
  handle *before;   /* `requests`, as they were */
  struct je_mpi_status *own;
};

static struct je_completion je_asked(int count, const handle *requests) {
  struct je_completion c = {0, calloc(count + 1, sizeof(int)), calloc(count + 1, sizeof(handle)),
                            calloc(count + 1, sizeof(struct je_mpi_status))};
  for (int i = 0; i < count; i++) c.which[i] = i, c.before[i] = requests[i];
  return c;
}

static struct je_completion je_all(int count, handle *requests) {
  struct je_completion c = je_asked(count, requests);
  for (int i = 0; i < count; i++) je_check(MPI_Wait(&requests[i], &c.own[i]), JE_WORLD);
  c.many = count;
  return c;
}

static struct je_completion je_any(int count, handle *requests, int *index) {
  struct je_completion c = je_asked(count, requests);
  je_check(MPI_Waitany(count, requests, index, c.own), JE_WORLD);
  c.many = *index != JE_UNDEFINED, c.which[0] = *index;
  return c;
}

static struct je_completion je_some(int count, handle *requests, int *many, int *indices, int waits) {
  struct je_completion c = je_asked(count, requests);
  je_check((waits ? MPI_Waitsome : MPI_Testsome)(count, requests, many, indices, c.own), JE_WORLD);
  for (int i = 0; i < *many; i++) c.which[i] = indices[i];
  c.many = *many;
  return c;
}

static struct je_completion je_all_if(int count, handle *requests, int *flag) {
  struct je_completion c = je_asked(count, requests);
  je_check(MPI_Testall(count, requests, flag, c.own), JE_WORLD);
  c.many = *flag ? count : 0;
  return c;
}

static struct je_completion je_any_if(int count, handle *requests, int *index, int *flag) {
  struct je_completion c = je_asked(count, requests);
  je_check(MPI_Testany(count, requests, index, flag, c.own), JE_WORLD);
  c.many = *flag && *index != JE_UNDEFINED, c.which[0] = *index;
  return c;
}

static void je_say(const struct je_completion *c, struct je_mpi_status *statuses, int count) {
  for (int i = 0; statuses != JE_NO_STATUS && i < count; i++) statuses[i] = c->own[i];
}

static void je_done(struct je_completion *c) {
  free(c->which);
  free(c->before);
  free(c->own);
}

static void je_completed_jvp(struct je_completion c) {
  for (int i = 0; i < c.many; i++) {
    struct je_request *r = je_found(c.before[c.which[i]]);
    if (r) je_landed_jvp(r);
  }
  je_done(&c);
}

struct je_waited {
  int count;
  struct je_request **of;
};

static void *je_completed_forward(struct je_completion c, void *arena) {
  struct je_waited *f = je_arena_allocate(arena, sizeof *f);
  f->count = 0;
  f->of = je_arena_allocate(arena, (c.many > 0 ? c.many : 0) * sizeof *f->of + 1);
  for (int i = 0; i < c.many; i++) {
    struct je_request *r = je_found(c.before[c.which[i]]);
    if (!r) continue;
    if (!r->kind && r->incoming && r->count) {
      r->peer = c.own[i].source, r->tag = c.own[i].tag;
      MPI_Get_count(&c.own[i], r->number, &r->count);
    }
    int at = f->count++; /* in the order in which they were begun */
    for (; at > 0 && f->of[at - 1]->number_of > r->number_of; at--) f->of[at] = f->of[at - 1];
    f->of[at] = r;
  }
  je_done(&c);
  for (int i = 0; i < f->count; i++) je_in_order_of(f->of[i]);
  return f;
}

static void je_completed_reverse(const struct je_waited *f) {
  for (int i = f->count - 1; i >= 0; i--) je_begin_back(f->of[i]);
}

#define COMPLETES(name, PARAMETERS, completion, statuses, count)                                                       \
  void RULE(name, _jvp)(PARAMETERS) {                                                                                  \
    struct je_completion c = completion;                                                                               \
    je_say(&c, statuses, count);                                                                                       \
    je_completed_jvp(c);                                                                                               \
  }                                                                                                                    \
  void *RULE(name, _forward)(PARAMETERS, long stable, void *arena) {                                                   \
    struct je_completion c = completion;                                                                               \
    (void)stable;                                                                                                      \
    je_say(&c, statuses, count);                                                                                       \
    return je_completed_forward(c, arena);                                                                             \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { je_completed_reverse(frame); }

#define STATUSES struct je_mpi_status *statuses
COMPLETES(wait, GIVEN(handle *request, STATUSES), je_all(1, request), statuses, 1)
COMPLETES(test, GIVEN(handle *request, int *flag, STATUSES), je_all_if(1, request, flag), statuses, 1)
COMPLETES(waitall, GIVEN(int count, handle *requests, STATUSES), je_all(count, requests), statuses, count)
COMPLETES(testall, GIVEN(int count, handle *requests, int *flag, STATUSES), je_all_if(count, requests, flag), statuses,
          count)
COMPLETES(waitany, GIVEN(int count, handle *requests, int *index, STATUSES), je_any(count, requests, index), statuses,
          1)
COMPLETES(testany, GIVEN(int count, handle *requests, int *index, int *flag, STATUSES),
          je_any_if(count, requests, index, flag), statuses, 1)
COMPLETES(waitsome, GIVEN(int count, handle *requests, int *many, int *indices, STATUSES),
          je_some(count, requests, many, indices, 1), statuses, *many)
COMPLETES(testsome, GIVEN(int count, handle *requests, int *many, int *indices, STATUSES),
          je_some(count, requests, many, indices, 0), statuses, *many)
