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
// The size of integers; 0 of all else.
static inline long IntegerBytes(HANDLE type) {
  switch (reinterpret_cast<long>(type)) {
    case 0x238: case 0x240: case 0x241: case 0x243: case 0x244: case 0x245: return 1;
    case 0x208: case 0x20c: case 0x248: case 0x249: return 2;
    case 0x209: case 0x20d: case 0x218: case 0x219: case 0x250: case 0x251: case 0x2d1: return 4;
    case 0x20a: case 0x20b: case 0x20e: case 0x20f: case 0x258: case 0x259: case 0x2d9: return 8;
  }
  return 0;
}
