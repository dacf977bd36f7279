/* What all kinds of numbers share: flags of operations, and the convention between the engine and these rules.

   For a routine R(a1 ... an), with s1 ... the shadows of its pointers to floating-point numbers, NULL where inactive:

     je_R_jvp(a1 ... an, s1 ...)                        the primal, and the tangent into the shadows
     je_R_forward(a1 ... an, s1 ..., stable, arena)     the primal; returns a frame with what the reverse needs
     je_R_reverse(frame)                                shadows of what is only read grow by their cotangents; the
   shadow of what was overwritten becomes the cotangent of the old contents

   A routine that returns a number x returns {x, tangent} and {x, frame}, and its reverse has the cotangent of x as
   second argument. Bit i of `stable` says that what the i-th pointer to numbers points to is, after the call, left as
   it is until the reverse has run: then it is read where it is, otherwise a copy is kept in the arena.

   Derivatives are computed by BLAS and LAPACK again, so that they can be differentiated in turn. No branch depends on
   the value of a tangent or cotangent, for the same reason. Complex numbers are pairs of real ones here: the cotangent
   of z has the derivatives by its real and its imaginary part, so that the adjoint of a linear map is its conjugate
   transpose. */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define JOIN3_(a, b, c) a##b##c
#define JOIN3(a, b, c) JOIN3_(a, b, c)
#define JE_SPREAD(...) __VA_ARGS__

typedef long index_t;
typedef _Complex float complex_float;
typedef _Complex double complex_double;

extern void *malloc(unsigned long);
extern void free(void *);
extern void *je_arena_allocate(void *arena, long bytes);

static const int je_one_int = 1;
static const int je_minus_one_int = -1;
static const char je_as_it_is = 'N', je_turned = 'C', je_left = 'L', je_right = 'R';

static inline char je_upper(const char *flag) { return (char)(*flag & 0xDF); }

static inline int je_is_transposed(char op) { return op == 'T' || op == 'C'; }

static inline int je_at_least_one(int n) { return n > 1 ? n : 1; }

static inline int je_is_stable(long stable, int bit) { return (int)(stable >> bit & 1); }

/* Where the first element of a vector lies: at the far end, if the stride is negative. */
static inline index_t je_start(int n, int inc) { return inc < 0 ? (index_t)(1 - n) * inc : 0; }

/* The rows [first, last) of column j that a triangle has; 'A' stands for the whole matrix. */
static inline int je_first_row(char uplo, int strict, int j) { return uplo == 'L' ? j + strict : 0; }

static inline int je_last_row(char uplo, int strict, int j, int rows) {
  int last = j + 1 - strict;
  return uplo == 'U' && last < rows ? last : rows;
}

/* What the C interface calls orders, operations, triangles, diagonals and sides, in the letters of the Fortran one. */

enum {
  JE_BY_COLUMNS = 102,
  JE_NO_TRANSPOSE = 111,
  JE_TRANSPOSE = 112,
  JE_CONJUGATE = 113,
  JE_UPPER = 121,
  JE_UNIT = 132,
  JE_LEFT = 141
};

static inline char je_operation(int trans) {
  return trans == JE_NO_TRANSPOSE ? 'N' : trans == JE_TRANSPOSE ? 'T' : 'C';
}

static inline char je_real_operation(int order, int trans) {
  return (trans == JE_NO_TRANSPOSE) == (order == JE_BY_COLUMNS) ? 'N' : 'T';
}

static inline char je_triangle(int order, int uplo) {
  return (uplo == JE_UPPER) == (order == JE_BY_COLUMNS) ? 'U' : 'L';
}

static inline char je_side(int order, int side) { return (side == JE_LEFT) == (order == JE_BY_COLUMNS) ? 'L' : 'R'; }

static inline char je_diagonal(int diag) { return diag == JE_UNIT ? 'U' : 'N'; }
