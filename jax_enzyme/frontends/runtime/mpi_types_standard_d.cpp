// Derived datatypes of double (frontends/mpi_types.py).
// provides: je_packed_standard_d_MPI_\w+
#include "mpi_handles_standard.h"
#define OWN(name) je_packed_standard_d_MPI_##name
#define DATATYPE reinterpret_cast<void *>(0x214L)
#define REAL double
#include "mpi_types.h"
