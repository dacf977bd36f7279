// Persistent requests of float (frontends/mpi_requests.py).
// provides: je_openmpi_s_MPI_\w+
#include "mpi_handles_openmpi.h"
#define OWN(name) je_openmpi_s_MPI_##name
#define DATATYPE ompi_mpi_float
#include "mpi_requests.h"
