// Persistent requests and derived datatypes of float (frontends/mpi_objects.py).
// provides: je_own_standard_s_MPI_\w+
#include "mpi_handles_standard.h"
#define OWN(name) je_own_standard_s_MPI_##name
#define DATATYPE reinterpret_cast<void *>(0x210L)
#define REAL float
#include "mpi_objects.h"
