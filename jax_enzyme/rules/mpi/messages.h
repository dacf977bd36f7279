/* A message out: its cotangent comes back, and is added.  A message in: its cotangent goes back, and is zero. */

static void je_send_jvp(const REAL *out, int count, int to, int tag, handle comm) {
  REAL *tangent = je_copy(out, count);
  je_check(MPI_Send(tangent, count, NUMBER, to, tag, comm), comm);
  free(tangent);
}

struct je_sent {
  int count, to, tag;
  handle comm;
  REAL *shadow;
};

static void *je_sent(void *arena, int count, int to, int tag, handle comm, REAL *shadow) {
  struct je_sent *f = je_arena_allocate(arena, sizeof *f);
  je_in_order(0, to, tag, comm);
  f->count = count, f->to = to, f->tag = tag, f->comm = comm, f->shadow = shadow;
  return f;
}

static void je_send_reverse(const struct je_sent *f) {
  REAL *back = je_zeros(f->count);
  handle request;
  je_check(MPI_Irecv(back, f->count, NUMBER, f->to, je_back(f->tag, f->comm), f->comm, &request), f->comm);
  je_wait_for_cotangents(&request, f->to, f->tag, f->comm);
  je_add(f->shadow, back, f->count);
  free(back);
}

/* MPI_Send and its kin differ in when they return; the derivatives need not. */
#define SENDS_AT_ONCE(name, function)                                                                                  \
  extern int function(const void *buf, int count, handle type, int to, int tag, handle comm);                          \
  void RULE(name, _jvp)(const REAL *buf, int count, handle type, int to, int tag, handle comm, const REAL *sbuf) {     \
    je_check(function(buf, count, type, to, tag, comm), comm);                                                         \
    je_send_jvp(sbuf, count, to, tag, comm);                                                                           \
  }                                                                                                                    \
  void *RULE(name, _forward)(const REAL *buf, int count, handle type, int to, int tag, handle comm, REAL *sbuf,        \
                             long stable, void *arena) {                                                               \
    (void)stable;                                                                                                      \
    je_check(function(buf, count, type, to, tag, comm), comm);                                                         \
    return je_sent(arena, count, to, tag, comm, sbuf);                                                                 \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { je_send_reverse(frame); }

SENDS_AT_ONCE(send, MPI_Send)
SENDS_AT_ONCE(ssend, MPI_Ssend)
SENDS_AT_ONCE(rsend, MPI_Rsend)

/* Where a message came from, and how long it was. */
struct je_came {
  int count, from, tag;
};

static struct je_came je_came(int from, const struct je_mpi_status *status, handle type) {
  struct je_came came = {0, status->source, status->tag};
  if (from == JE_PROC_NULL)
    came.from = JE_PROC_NULL, came.tag = 0;
  else
    MPI_Get_count(status, type, &came.count);
  return came;
}

/* Stops where it was one of a process that is in its reverse sweep already. */
static void je_no_derivative(struct je_came came, handle comm) {
  if (came.tag >= JE_BACK)
    je_stop(comm, "jax_enzyme: a probe in a derivative names a source or a tag: not MPI_ANY_SOURCE and MPI_ANY_TAG");
}

static struct je_came je_receive(REAL *buf, int count, handle type, int from, int tag, handle comm,
                                 struct je_mpi_status *status) {
  struct je_mpi_status own;
  je_no_wildcards(from, tag, comm);
  je_check(MPI_Recv(buf, count, type, from, tag, comm, &own), comm);
  if (status != JE_NO_STATUS) *status = own;
  return je_came(from, &own, type);
}

void RULE(recv, _jvp)(REAL *buf, int count, handle type, int from, int tag, handle comm, struct je_mpi_status *status,
                      REAL *sbuf) {
  struct je_came came = je_receive(buf, count, type, from, tag, comm, status);
  REAL *tangent = je_zeros(count);
  je_check(MPI_Recv(tangent, came.count, NUMBER, came.from, came.tag, comm, JE_NO_STATUS), comm);
  je_set(sbuf, tangent, came.count);
  free(tangent);
}

struct je_received {
  struct je_came came;
  handle comm;
  REAL *shadow;
};

void *RULE(recv, _forward)(REAL *buf, int count, handle type, int from, int tag, handle comm,
                           struct je_mpi_status *status, REAL *sbuf, long stable, void *arena) {
  struct je_received *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  je_in_order(1, from, tag, comm);
  f->came = je_receive(buf, count, type, from, tag, comm, status);
  je_no_derivative(f->came, comm);
  f->comm = comm, f->shadow = sbuf;
  return f;
}

void RULE(recv, _reverse)(void *frame) {
  struct je_received *f = frame;
  REAL *back = je_copy(f->shadow, f->came.count);
  je_check(MPI_Send(back, f->came.count, NUMBER, f->came.from, je_back(f->came.tag, f->comm), f->comm), f->comm);
  je_clear(f->shadow, f->came.count);
  free(back);
}

/* Both at once: so are their cotangents, the other way round. */

static struct je_came je_exchange(const REAL *out, int out_count, handle out_type, int to, int out_tag, REAL *in,
                                  int in_count, handle in_type, int from, int in_tag, handle comm,
                                  struct je_mpi_status *status) {
  struct je_mpi_status own;
  je_no_wildcards(from, in_tag, comm);
  je_check(MPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, &own), comm);
  if (status != JE_NO_STATUS) *status = own;
  return je_came(from, &own, in_type);
}

void RULE(sendrecv, _jvp)(const REAL *out, int out_count, handle out_type, int to, int out_tag, REAL *in, int in_count,
                          handle in_type, int from, int in_tag, handle comm, struct je_mpi_status *status,
                          const REAL *sout, REAL *sin) {
  struct je_came came =
      je_exchange(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
  REAL *sent = je_copy(sout, out_count), *got = je_zeros(in_count);
  je_check(MPI_Sendrecv(sent, out_count, NUMBER, to, out_tag, got, in_count, NUMBER, came.from, came.tag, comm,
                        JE_NO_STATUS),
           comm);
  je_set(sin, got, came.count);
  free(sent);
  free(got);
}

struct je_exchanged {
  struct je_came came;
  int count, to, tag;
  handle comm;
  REAL *sout, *sin;
};

void *RULE(sendrecv, _forward)(const REAL *out, int out_count, handle out_type, int to, int out_tag, REAL *in,
                               int in_count, handle in_type, int from, int in_tag, handle comm,
                               struct je_mpi_status *status, REAL *sout, REAL *sin, long stable, void *arena) {
  struct je_exchanged *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  je_in_order(0, to, out_tag, comm);
  je_in_order(1, from, in_tag, comm);
  f->came = je_exchange(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
  f->count = out_count, f->to = to, f->tag = out_tag, f->comm = comm, f->sout = sout, f->sin = sin;
  return f;
}

void RULE(sendrecv, _reverse)(void *frame) {
  struct je_exchanged *f = frame;
  REAL *back = je_copy(f->sin, f->came.count), *got = je_zeros(f->count);
  je_check(MPI_Sendrecv(back, f->came.count, NUMBER, f->came.from, je_back(f->came.tag, f->comm), got, f->count, NUMBER,
                        f->to, je_back(f->tag, f->comm), f->comm, JE_NO_STATUS),
           f->comm);
  je_clear(f->sin, f->came.count);
  je_add(f->sout, got, f->count);
  free(back);
  free(got);
}

/* In one buffer: what it held goes out, what comes in takes its place. */

static struct je_came je_replace(REAL *buf, int count, handle type, int to, int out_tag, int from, int in_tag,
                                 handle comm, struct je_mpi_status *status) {
  REAL *out = je_copy(buf, count);
  struct je_came came = je_exchange(out, count, type, to, out_tag, buf, count, type, from, in_tag, comm, status);
  free(out);
  return came;
}

void RULE(sendrecv_replace, _jvp)(REAL *buf, int count, handle type, int to, int out_tag, int from, int in_tag,
                                  handle comm, struct je_mpi_status *status, REAL *sbuf) {
  struct je_came came = je_replace(buf, count, type, to, out_tag, from, in_tag, comm, status);
  REAL *sent = je_copy(sbuf, count), *got = je_zeros(count);
  je_check(MPI_Sendrecv(sent, count, NUMBER, to, out_tag, got, count, NUMBER, came.from, came.tag, comm, JE_NO_STATUS),
           comm);
  je_set(sbuf, got, came.count);
  free(sent);
  free(got);
}

void *RULE(sendrecv_replace, _forward)(REAL *buf, int count, handle type, int to, int out_tag, int from, int in_tag,
                                       handle comm, struct je_mpi_status *status, REAL *sbuf, long stable,
                                       void *arena) {
  struct je_exchanged *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  je_in_order(0, to, out_tag, comm);
  je_in_order(1, from, in_tag, comm);
  f->came = je_replace(buf, count, type, to, out_tag, from, in_tag, comm, status);
  f->count = count, f->to = to, f->tag = out_tag, f->comm = comm, f->sout = sbuf, f->sin = sbuf;
  return f;
}

void RULE(sendrecv_replace, _reverse)(void *frame) { RULE(sendrecv, _reverse)(frame); }
