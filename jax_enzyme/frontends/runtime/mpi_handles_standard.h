#pragma once
// Requests and datatypes of our own (frontends/mpi_objects.py) in the standard binary interface of MPI 5,
// whose own handles are from 0x100 on.
typedef void *HANDLE;
#define NOTHING reinterpret_cast<void *>(0x180L)
#define NO_TYPE reinterpret_cast<void *>(0x200L)
#define NO_OPERATION reinterpret_cast<void *>(0x20L)
#define ROWS_FIRST 0xc
#define AS_HANDLE(number) reinterpret_cast<void *>(0x10000L + (number))
#define AS_NUMBER(handle) (reinterpret_cast<unsigned long>(handle) - 0x10000)
#define NO_STATUS nullptr
#define IN_PLACE reinterpret_cast<void *>(1L)
#define AS_INT reinterpret_cast<void *>(0x209L)
#define AS_MAX reinterpret_cast<void *>(0x23L)
#define AS_MIN reinterpret_cast<void *>(0x22L)
#define AS_SUM reinterpret_cast<void *>(0x21L)
#define AS_PRODUCT reinterpret_cast<void *>(0x24L)
