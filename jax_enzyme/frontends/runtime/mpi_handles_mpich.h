#pragma once
// Persistent requests (frontends/mpi_requests.py) in the binary interface of MPICH.
#define HANDLE int
#define NOTHING 0x2c000000
#define MARKED(handle) (((handle) & 0xff000000) == 0x0e000000)
#define AS_HANDLE(number) (0x0e000000 | (number))
#define AS_NUMBER(handle) ((handle) & 0xffffff)
