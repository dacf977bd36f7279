#pragma once
// Persistent requests (frontends/mpi_requests.py) in the standard binary interface of MPI 5, whose own handles are from
// 0x100 on.
#define HANDLE void *
#define NOTHING reinterpret_cast<void *>(0x180L)
#define NUMBER(handle) reinterpret_cast<unsigned long>(handle)
#define MARKED(handle) (NUMBER(handle) - 0x10000 < 256)
#define AS_HANDLE(number) reinterpret_cast<void *>(0x10000L + (number))
#define AS_NUMBER(handle) (NUMBER(handle) - 0x10000)
