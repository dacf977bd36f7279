#pragma once
// Requests and datatypes of our own (frontends/mpi_objects.py) in the binary interface of MPICH.
typedef int HANDLE;
#define NOTHING 0x2c000000
#define NO_TYPE 0x0c000000
#define NO_OPERATION 0x18000000
#define ROWS_FIRST 56
#define AS_HANDLE(number) (0x0e000000 | (number))
#define AS_NUMBER(handle) (((handle) & 0xff000000) == 0x0e000000 ? (handle) & 0xffffffUL : ~0UL)
#define NO_STATUS reinterpret_cast<Status *>(1L)
#define IN_PLACE reinterpret_cast<void *>(-1L)
#define AS_INT 0x4c000405
#define AS_MAX 0x58000001
#define AS_MIN 0x58000002
#define AS_SUM 0x58000003
#define AS_PRODUCT 0x58000004
