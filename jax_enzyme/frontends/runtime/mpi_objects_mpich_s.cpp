// Persistent requests, derived datatypes and pairs with places of float (frontends/mpi_objects.py, mpi_pairs.py).
// provides: je_own_mpich_s_MPI_\w+
#include "mpi_handles_mpich.h"
#define OWN(name) je_own_mpich_s_MPI_##name
#define DATATYPE 0x4c00040a
// Fortran's names of it.
#define IS_ALSO(handle) ((handle) == 0x4c00041c || (handle) == 0x4c000427)
#define REAL float
#include "mpi_objects.h"
#include "mpi_pairs.h"
