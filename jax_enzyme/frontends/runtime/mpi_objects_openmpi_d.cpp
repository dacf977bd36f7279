// Persistent requests, derived datatypes and pairs with places of double (frontends/mpi_objects.py, mpi_pairs.py).
// provides: je_own_openmpi_d_MPI_\w+
#include "mpi_handles_openmpi.h"
#define OWN(name) je_own_openmpi_d_MPI_##name
#define DATATYPE ompi_mpi_double
#define REAL double
#include "mpi_objects.h"
#include "mpi_pairs.h"
