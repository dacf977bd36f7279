#pragma once
// Requests and datatypes of our own (frontends/mpi_objects.py) in the binary interface of Open MPI.
extern "C" char ompi_request_null[], ompi_mpi_datatype_null[], ompi_mpi_double[], ompi_mpi_float[], ompi_mpi_int[],
    ompi_mpi_op_max[], ompi_mpi_op_min[], ompi_mpi_op_sum[], ompi_mpi_op_prod[], ompi_mpi_op_null[];
typedef void *HANDLE;
#define NOTHING (static_cast<void *>(ompi_request_null))
#define NO_TYPE (static_cast<void *>(ompi_mpi_datatype_null))
#define NO_OPERATION (static_cast<void *>(ompi_mpi_op_null))
#define ROWS_FIRST 0
static char je_handles[1024]; // handles are addresses here, and numbers made addresses could be any
#define AS_HANDLE(number) static_cast<void *>(&je_handles[number])
#define AS_NUMBER(handle) (reinterpret_cast<unsigned long>(handle) - reinterpret_cast<unsigned long>(je_handles))
#define NO_STATUS nullptr
#define IN_PLACE reinterpret_cast<void *>(1L)
#define AS_INT static_cast<void *>(ompi_mpi_int)
#define AS_MAX static_cast<void *>(ompi_mpi_op_max)
#define AS_MIN static_cast<void *>(ompi_mpi_op_min)
#define AS_SUM static_cast<void *>(ompi_mpi_op_sum)
#define AS_PRODUCT static_cast<void *>(ompi_mpi_op_prod)
