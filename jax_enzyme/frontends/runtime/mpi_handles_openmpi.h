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
extern "C" char ompi_mpi_char[], ompi_mpi_signed_char[], ompi_mpi_unsigned_char[], ompi_mpi_short[],
    ompi_mpi_unsigned_short[], ompi_mpi_unsigned[], ompi_mpi_long[], ompi_mpi_unsigned_long[], ompi_mpi_long_long_int[],
    ompi_mpi_unsigned_long_long[], ompi_mpi_int8_t[], ompi_mpi_uint8_t[], ompi_mpi_int16_t[], ompi_mpi_uint16_t[],
    ompi_mpi_int32_t[], ompi_mpi_uint32_t[], ompi_mpi_int64_t[], ompi_mpi_uint64_t[], ompi_mpi_c_bool[],
    ompi_mpi_integer[], ompi_mpi_logical[];
// The size of integers; 0 of all else.
#define IS(name) (type == static_cast<void *>(ompi_mpi_##name))
static inline long IntegerBytes(HANDLE type) {
  if (IS(char) || IS(signed_char) || IS(unsigned_char) || IS(int8_t) || IS(uint8_t) || IS(c_bool)) return 1;
  if (IS(short) || IS(unsigned_short) || IS(int16_t) || IS(uint16_t)) return 2;
  if (IS(int) || IS(unsigned) || IS(int32_t) || IS(uint32_t) || IS(integer) || IS(logical)) return 4;
  if (IS(long) || IS(unsigned_long) || IS(long_long_int) || IS(unsigned_long_long)) return 8;
  return IS(int64_t) || IS(uint64_t) ? 8 : 0;
}
