/* Communicators that a kernel makes and frees. The calls back use them once more, so that a freed one is marked, and
   freed where, in the reverse sweep, it was made. */

extern int MPI_Comm_set_name(handle comm, const char *name);
extern int MPI_Comm_get_name(handle comm, char *name, int *length);
#define JE_FREED "jax_enzyme: freed"
#define JE_LONGEST_NAME 256

void RULE(comm_free, _jvp)(handle *comm) { je_check(MPI_Comm_free(comm), JE_WORLD); }

void *RULE(comm_free, _forward)(handle *comm, long stable, void *arena) {
  (void)stable, (void)arena;
  je_check(MPI_Comm_set_name(*comm, JE_FREED), JE_WORLD);
  *comm = JE_NO_COMM;
  return 0;
}

void RULE(comm_free, _reverse)(void *frame) { (void)frame; }

static void *je_made(handle comm, void *arena) {
  handle *f = je_arena_allocate(arena, sizeof *f);
  *f = comm;
  return f;
}

static void je_unmade(void *frame) {
  handle *comm = frame;
  char name[JE_LONGEST_NAME];
  int length, i = 0;
  if (*comm == JE_NO_COMM) return;
  je_check(MPI_Comm_get_name(*comm, name, &length), JE_WORLD);
  while (i < length && name[i] == JE_FREED[i]) i++;
  if (length == sizeof JE_FREED - 1 && i == length) je_check(MPI_Comm_free(comm), JE_WORLD);
}

#define MAKES(name, function, PARAMETERS, ARGUMENTS)                                                                   \
  extern int function(PARAMETERS, handle *made);                                                                       \
  void RULE(name, _jvp)(PARAMETERS, handle *made) { je_check(function(ARGUMENTS, made), comm); }                       \
  void *RULE(name, _forward)(PARAMETERS, handle *made, long stable, void *arena) {                                     \
    (void)stable;                                                                                                      \
    je_check(function(ARGUMENTS, made), comm);                                                                         \
    return je_made(*made, arena);                                                                                      \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { je_unmade(frame); }

MAKES(comm_dup, MPI_Comm_dup, handle comm, comm)
MAKES(comm_split, MPI_Comm_split, GIVEN(handle comm, int color, int key), GIVEN(comm, color, key))
MAKES(comm_split_type, MPI_Comm_split_type, GIVEN(handle comm, int kind, int key, handle info),
      GIVEN(comm, kind, key, info))
MAKES(comm_create, MPI_Comm_create, GIVEN(handle comm, handle group), GIVEN(comm, group))
MAKES(comm_create_group, MPI_Comm_create_group, GIVEN(handle comm, handle group, int tag), GIVEN(comm, group, tag))
MAKES(cart_create, MPI_Cart_create, GIVEN(handle comm, int n, const int *sizes, const int *periodic, int reorder),
      GIVEN(comm, n, sizes, periodic, reorder))
MAKES(cart_sub, MPI_Cart_sub, GIVEN(handle comm, const int *remain), GIVEN(comm, remain))
MAKES(dist_graph_create, MPI_Dist_graph_create,
      GIVEN(handle comm, int n, const int *from, const int *degrees, const int *to, const int *weights, handle info,
            int reorder),
      GIVEN(comm, n, from, degrees, to, weights, info, reorder))
MAKES(dist_graph_create_adjacent, MPI_Dist_graph_create_adjacent,
      GIVEN(handle comm, int in, const int *from, const int *in_weights, int out, const int *to,
            const int *out_weights, handle info, int reorder),
      GIVEN(comm, in, from, in_weights, out, to, out_weights, info, reorder))
