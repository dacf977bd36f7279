// Derived datatypes of double (frontends/mpi_types.py).
// provides: je_packed_openmpi_d_MPI_\w+
#include "mpi_handles_openmpi.h"
#define OWN(name) je_packed_openmpi_d_MPI_##name
#define DATATYPE ompi_mpi_double
#define REAL double
#include "mpi_types.h"
