// Persistent requests, derived datatypes and pairs with places of double (frontends/mpi_objects.py, mpi_pairs.py).
// provides: je_own_mpich_d_MPI_\w+
#include "mpi_handles_mpich.h"
#define OWN(name) je_own_mpich_d_MPI_##name
#define DATATYPE 0x4c00080b
// Fortran's names of it.
#define IS_ALSO(handle) ((handle) == 0x4c00081f || (handle) == 0x4c000829)
#define REAL double
#include "mpi_objects.h"
#include "mpi_pairs.h"
