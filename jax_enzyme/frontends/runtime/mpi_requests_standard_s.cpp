// Persistent requests of float (frontends/mpi_requests.py).
// provides: je_standard_s_MPI_\w+
#include "mpi_handles_standard.h"
#define OWN(name) je_standard_s_MPI_##name
#define DATATYPE reinterpret_cast<void *>(0x210L)
#include "mpi_requests.h"
