// Persistent requests of double (frontends/mpi_requests.py).
// provides: je_openmpi_d_MPI_\w+
#include "mpi_handles_openmpi.h"
#define OWN(name) je_openmpi_d_MPI_##name
#define DATATYPE ompi_mpi_double
#include "mpi_requests.h"
