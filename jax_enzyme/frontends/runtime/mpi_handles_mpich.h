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
// The size of integers; 0 of all else.
static inline long IntegerBytes(HANDLE type) {
  switch (type) {
    case 0x4c000101: case 0x4c000102: case 0x4c000118: case 0x4c00012d: case 0x4c000137: case 0x4c00013b: case 0x4c00013f:
    case 0x4c000203: case 0x4c000204: case 0x4c00022f: case 0x4c000238: case 0x4c00023c: case 0x4c000405: case 0x4c000406:
    case 0x4c00041b: case 0x4c00041d: case 0x4c000430: case 0x4c000439: case 0x4c00043d: case 0x4c000807: case 0x4c000808:
    case 0x4c000809: case 0x4c000819: case 0x4c000831: case 0x4c00083a: case 0x4c00083e:
      return type >> 8 & 0xff;
  }
  return 0;
}
