/* REAL: the type of real numbers; WIDTH: how many of them a number consists of, 1 or 2. */

#define RULE_(abi, name, letter, part) je_mpi_##abi##_##name##_##letter##part
#define RULE_OF(abi, name, letter, part) RULE_(abi, name, letter, part)
#define RULE(name, part) RULE_OF(ABI, name, LETTER, part)
#define JE_NUMBER_(letter) JE_##letter
#define JE_NUMBER_OF(letter) JE_NUMBER_(letter)
#define NUMBER JE_NUMBER_OF(LETTER)
#define GIVEN(...) __VA_ARGS__ /* as one argument of a macro */
#define JE_BACK (1 << 19)
#define JE_COLLECTIVE 2 /* what an order is kept of, beside messages out, 0, and in, 1 */

/* MPI_Abort may come back before the launcher has ended the process, which must not go on. A launcher that ends
   processes leaves unread what they said just before. */
static void je_end_all(handle comm) {
  usleep(500000);
  MPI_Abort(comm, 1);
  usleep(10000000);
  _exit(1);
}

static void je_stop(handle comm, const char *why) {
  dprintf(2, "%s\n", why);
  je_end_all(comm);
}

static inline void je_check(int code, handle comm) {
  if (code) je_stop(comm, "jax_enzyme: a function of MPI returned an error in a derivative");
}

static inline int je_back(int tag, handle comm) {
  if (tag >= JE_BACK) je_stop(comm, "jax_enzyme: tags of messages in derivatives are less than 524288");
  return tag + JE_BACK;
}

static inline void je_no_wildcards(int from, int tag, handle comm) {
  if (from == JE_ANY_SOURCE && tag == JE_ANY_TAG)
    je_stop(comm, "jax_enzyme: a receive in a derivative names a source or a tag: not MPI_ANY_SOURCE and MPI_ANY_TAG");
}

static inline int je_rank(handle comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

static inline int je_size(handle comm) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}

static inline REAL *je_zeros(long count) { return calloc(count * WIDTH + 1, sizeof(REAL)); }

/* Those numbers, or zeros where there are none, in new memory. */
static REAL *je_copy(const REAL *from, long count) {
  REAL *made = je_zeros(count);
  if (from)
    for (long i = 0; i < count * WIDTH; i++) made[i] = from[i];
  return made;
}

static void je_set(REAL *to, const REAL *from, long count) {
  if (to)
    for (long i = 0; i < count * WIDTH; i++) to[i] = from[i];
}

static void je_clear(REAL *to, long count) {
  if (to)
    for (long i = 0; i < count * WIDTH; i++) to[i] = 0;
}

static void je_add(REAL *to, const REAL *from, long count) {
  if (to)
    for (long i = 0; i < count * WIDTH; i++) to[i] += from[i];
}

static inline void je_not_in_place(const void *out, const void *in, handle comm) {
  if (out == JE_IN_PLACE || in == JE_IN_PLACE)
    je_stop(comm, "jax_enzyme: MPI_IN_PLACE in a derivative is named in the call, where the call has a rule for it");
}

static inline long je_root_only(long count, int root, handle comm) { return je_rank(comm) == root ? count : 0; }

/* The root's own block of what it sends to all or gets of all, where numbers have a shadow. */
static REAL *je_own(REAL *shadow, int count, handle comm) {
  return shadow ? shadow + (long)je_rank(comm) * count * WIDTH : 0;
}

/* A process's own block, where it will be. */
static REAL *je_own_block(REAL *shadow, const int *starts, handle comm) {
  return shadow ? shadow + (long)starts[je_rank(comm)] * WIDTH : 0;
}
