// Derived datatypes of double (frontends/mpi_types.py).
// provides: je_packed_mpich_d_MPI_\w+
#include "mpi_handles_mpich.h"
#define OWN(name) je_packed_mpich_d_MPI_##name
#define DATATYPE 0x4c00080b
#define REAL double
#include "mpi_types.h"
