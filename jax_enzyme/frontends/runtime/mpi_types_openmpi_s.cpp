// Derived datatypes of float (frontends/mpi_types.py).
// provides: je_packed_openmpi_s_MPI_\w+
#include "mpi_handles_openmpi.h"
#define OWN(name) je_packed_openmpi_s_MPI_##name
#define DATATYPE ompi_mpi_float
#define REAL float
#include "mpi_types.h"
