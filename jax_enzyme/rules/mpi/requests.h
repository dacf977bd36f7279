/* Requests say nothing but a handle: what is begun leaves a record, for as long as nobody has waited for it, and for
   the reverse sweep longer. In reverse the wait begins the message back, and what began the message waits for that.

   Between two processes messages of one tag match in the order in which they are begun, and so do those back. So in
   reverse mode they are waited for in that order, or several at once. A record may be of either precision. */

/* What goes into a call of all processes, or comes out of it: `total` numbers side by side, or `many` blocks of
   `counts` numbers at `starts`, which travel packed, at `packed`. */
struct je_side {
  long total;
  int many, *counts, *starts, *packed;
};

/* A tangent that travels beside, or a cotangent that travels back: `moved` is what is under way, and `from`, of a call
   of all processes, what goes in, where `moved` is what comes out. */
struct je_part {
  struct je_part *next;
  void *sout, *sin, *from, *moved;
  handle request;
};

struct je_request {
  struct je_request *next; /* begun, or completed, before this */
  handle request, number, comm;
  int number_of, incoming, count, peer, tag, begun, single;
  int kind;   /* of a call of all processes, which are begun and waited for as messages are; or 0 */
  long reals; /* of each number */
  long own;   /* in place: where what goes in lies, of what comes out; or JE_APART */
  struct je_side in, out;
  struct je_part *tangents, *cotangents;
};

#define JE_APART (-1)

static struct je_request *je_requests, *je_kept; /* under way; complete, and waited for by the reverse sweep */
static int je_requests_begun;

static long je_bytes(const struct je_request *r, long count) {
  return count * r->reals * (r->single ? sizeof(float) : sizeof(double));
}

static void je_move(const struct je_request *r, void *to, const void *from, long count, int adds) {
  if (!to) return;
  for (long i = 0; i < count * r->reals; i++)
    if (r->single)
      ((float *)to)[i] = (adds ? ((float *)to)[i] : 0) + ((const float *)from)[i];
    else
      ((double *)to)[i] = (adds ? ((double *)to)[i] : 0) + ((const double *)from)[i];
}

static void je_nothing(const struct je_request *r, void *to, long count) {
  if (!to) return;
  for (long i = 0; i < count * r->reals; i++)
    if (r->single)
      ((float *)to)[i] = 0;
    else
      ((double *)to)[i] = 0;
}

static struct je_request *je_under_way(handle request, int incoming, int count, int peer, int tag, handle comm) {
  struct je_request *r = calloc(1, sizeof *r);
  r->request = request, r->incoming = incoming, r->count = peer == JE_PROC_NULL ? 0 : count;
  r->peer = peer, r->tag = tag, r->comm = comm, r->number = NUMBER, r->single = sizeof(REAL) == 4, r->reals = WIDTH;
  r->number_of = je_requests_begun++;
  r->next = je_requests;
  return je_requests = r;
}

/* The record of a request, the oldest where several share a handle, which is then under way no longer; null for one of
   integers, or of nothing. */
static struct je_request *je_found(handle request) {
  struct je_request **oldest = 0;
  for (struct je_request **at = &je_requests; *at; at = &(*at)->next)
    if ((*at)->request == request) oldest = at;
  if (!oldest) return 0;
  struct je_request *found = *oldest;
  *oldest = found->next;
  return found;
}

/* That of a number, which nobody needs any more. */
static struct je_request *je_numbered(struct je_request **among, int number_of) {
  for (; *among; among = &(*among)->next)
    if ((*among)->number_of == number_of) {
      struct je_request *found = *among;
      *among = found->next;
      return found;
    }
  return 0;
}

static struct je_part *je_with(struct je_part **parts, const void *sout, void *sin) {
  while (*parts) parts = &(*parts)->next;
  *parts = calloc(1, sizeof **parts);
  (*parts)->sout = (void *)sout, (*parts)->sin = sin;
  return *parts;
}

static void je_free_parts(struct je_part **parts) {
  while (*parts) {
    struct je_part *p = *parts;
    *parts = p->next;
    free(p->from);
    free(p->moved);
    free(p);
  }
}

static void je_forget(struct je_request *r) {
  je_free_parts(&r->tangents);
  je_free_parts(&r->cotangents);
  free(r->in.counts);
  free(r->out.counts);
  free(r);
}

static inline int je_same(int one, int other, int any) { return one == other || one == any || other == any; }

/* Stops where a message like this one, begun before it, is still under way. */
static void je_in_order(int number_of, int incoming, int peer, int tag, handle comm) {
  for (const struct je_request *r = je_requests; r; r = r->next)
    if (r->cotangents && r->number_of < number_of && r->incoming == incoming && r->comm == comm &&
        peer != JE_PROC_NULL && (r->kind || je_same(r->peer, peer, JE_ANY_SOURCE)) && je_same(r->tag, tag, JE_ANY_TAG))
      je_stop(comm,
              "jax_enzyme: in reverse mode messages of one tag between two processes, and collective calls of one "
              "communicator, are waited for in the order in which they are begun, or by one MPI_Waitall");
}

void RULE(begun, _order)(int incoming, int peer, int tag, handle comm) {
  je_in_order(je_requests_begun, incoming, peer, tag, comm);
}
