// Persistent requests of float (frontends/mpi_requests.py).
// provides: je_mpich_s_MPI_\w+
#include "mpi_handles_mpich.h"
#define OWN(name) je_mpich_s_MPI_##name
#define DATATYPE 0x4c00040a
#include "mpi_requests.h"
