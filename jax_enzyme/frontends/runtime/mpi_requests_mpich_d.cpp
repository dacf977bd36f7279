// Persistent requests of double (frontends/mpi_requests.py).
// provides: je_mpich_d_MPI_\w+
#include "mpi_handles_mpich.h"
#define OWN(name) je_mpich_d_MPI_##name
#define DATATYPE 0x4c00080b
#include "mpi_requests.h"
