#pragma once
// Persistent requests (frontends/mpi_requests.py) in the binary interface of Open MPI.
extern "C" char ompi_request_null[], ompi_mpi_double[], ompi_mpi_float[];
#define HANDLE void *
#define NOTHING (static_cast<void *>(ompi_request_null))
#define NUMBER(handle) reinterpret_cast<unsigned long>(handle)
#define MARKED(handle) (NUMBER(handle) - 1 < 256)
#define AS_HANDLE(number) reinterpret_cast<void *>((number) + 1L)
#define AS_NUMBER(handle) (NUMBER(handle) - 1)
