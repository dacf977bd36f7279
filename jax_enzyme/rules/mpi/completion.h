/* Waited for, or asked whether they are complete: requests, by any of MPI's functions, each of which says which ones.
 */

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

/* The tangents of a message have come, or gone. */
static void je_landed(struct je_request *r) {
  for (struct je_part *p = r->tangents; p; p = p->next) {
    struct je_mpi_status moved;
    if (r->kind) {
      je_end_of(r, p, &r->out, p->sin, 0);
      continue;
    }
    je_check(MPI_Wait(&p->request, &moved), r->comm);
    if (r->incoming && r->count) {
      int count;
      MPI_Get_count(&moved, r->number, &count);
      je_move(r, p->sin, p->moved, count, 0);
    }
  }
  je_free_parts(&r->tangents);
}

/* What was complete at once, for the reverse sweep. */
struct je_group {
  struct je_group *next;
  int number, count;
  struct je_request **of;
};

static struct je_group *je_groups;
static int je_groups_made;

static void je_keep(struct je_group *group, struct je_request *r, const struct je_mpi_status *came) {
  if (!r->kind && r->incoming && r->count) {
    r->peer = came->source, r->tag = came->tag;
    MPI_Get_count(came, r->number, &r->count);
  }
  r->next = je_kept, je_kept = r;
  int at = group->count++; /* in the order in which they were begun */
  for (; at > 0 && group->of[at - 1]->number_of > r->number_of; at--) group->of[at] = group->of[at - 1];
  group->of[at] = r;
}

static int je_completed(struct je_completion c, int keeps) {
  struct je_group *group = 0;
  if (keeps) {
    group = malloc(sizeof *group);
    group->next = je_groups, group->number = je_groups_made++, group->count = 0;
    group->of = calloc((c.many > 0 ? c.many : 0) + 1, sizeof *group->of);
    je_groups = group;
  }
  for (int i = 0; i < c.many; i++) {
    struct je_request *r = je_found(c.before[c.which[i]]);
    if (!r) continue;
    je_landed(r);
    if (r->cotangents)
      je_keep(group, r, &c.own[i]);
    else
      je_forget(r);
  }
  je_done(&c);
  for (int i = 0; keeps && i < group->count; i++) {
    const struct je_request *r = group->of[i];
    je_in_order(r->number_of, r->incoming, r->kind ? 0 : r->peer, r->tag, r->comm);
  }
  return keeps ? group->number : 0;
}

void RULE(begun, _turn)(int number) {
  struct je_group **at = &je_groups;
  while ((*at)->number != number) at = &(*at)->next;
  struct je_group *group = *at;
  *at = group->next;
  for (int i = group->count - 1; i >= 0; i--) je_begin_back(group->of[i]);
  free(group->of);
  free(group);
}

#define COMPLETES(name, PARAMETERS, ARGUMENTS, completion, statuses, count)                                            \
  int RULE(name, _complete)(PARAMETERS, int keeps) {                                                                   \
    struct je_completion c = completion;                                                                               \
    je_say(&c, statuses, count);                                                                                       \
    return je_completed(c, keeps);                                                                                     \
  }
#include "completions.h"
