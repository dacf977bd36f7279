// What a host function of a CUDA source asks of the runtime, on one device whose memory is the host's and whose work is
// done when it is asked for. Streams and events are in order by themselves, and no time passes between events.
// provides: cuda[A-Z]\w+ __cuda(?:Push|Pop)CallConfiguration __je_done_at_once __je_graph_update __je_graph_copy
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_graphs.h"
#include "cuda_properties.h"

namespace {

struct dim3 {
  unsigned x, y, z;
};

struct Configuration {
  dim3 grid, block;
  size_t shared;
  void *stream;
};

Configuration configuration;

constexpr size_t pitch_unit = 512;
constexpr int invalid_value = 1;

int allocate(void **place, size_t size) {
  void *memory = malloc(size);
  if (!memory && size) __assert_fail("cudaMalloc and its like find the memory that they ask for", "", 0, "");
  *place = memory;
  return 0;
}

int copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
  __je_done_at_once();
  return move_rows(to, to_pitch, from, from_pitch, width, height), 0;
}
int copy_rows_in_order(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       void *stream) {
  if (is_captured(stream))
    append(capturing, {nullptr, copy_of_rows, nullptr, to, from, to_pitch, from_pitch, width, height});
  else move_rows(to, to_pitch, from, from_pitch, width, height);
  return 0;
}
int copy(void *to, const void *from, size_t size) {
  __je_done_at_once();
  memcpy(to, from, size);
  return 0;
}
int copy_in_order(void *to, const void *from, size_t size, void *stream) {
  if (is_captured(stream)) append(capturing, {nullptr, copy_of_rows, nullptr, to, from, 0, 0, size, 1});
  else memcpy(to, from, size);
  return 0;
}

int attribute(int number) {
  switch (number) {
    case 1: case 2: case 3: return 1024;
    case 4: return 64;
    case 5: return 2147483647;
    case 6: case 7: return 65535;
    case 8: return 49152;
    case 9: case 12: return 65536;
    case 10: return 32;
    case 13: case 36: return 1000000;
    case 16: return 16;
    case 19: case 31: case 41: case 83: case 89: case 95: return 1;
    case 39: return 2048;
    case 75: return 8;
    case 81: case 97: return 232448;
    default: return 0;
  }
}

}  // namespace

extern "C" {

// What the lowering makes a call of the kernel's own function of.
void __je_launch(const void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                 unsigned block_y, unsigned block_z, size_t shared, void **arguments);

int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  if (is_captured(stream)) {
    void *record =
        __je_record(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, arguments);
    append(capturing, {nullptr, launch, record});
  } else {
    __je_launch(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, arguments);
  }
  return 0;
}
int cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                void *stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void **stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *stream = configuration.stream;
  return 0;
}

int cudaMalloc(void **place, size_t size) { return allocate(place, size); }
int cudaMallocManaged(void **place, size_t size, unsigned) { return allocate(place, size); }
int cudaMallocHost(void **place, size_t size) { return allocate(place, size); }
int cudaHostAlloc(void **place, size_t size, unsigned) { return allocate(place, size); }
int cudaMallocAsync(void **place, size_t size, void *) { return allocate(place, size); }
int cudaMallocPitch(void **place, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + pitch_unit - 1) / pitch_unit * pitch_unit;
  return allocate(place, *pitch * height);
}
int cudaFree(void *memory) { return free(memory), 0; }
int cudaFreeHost(void *memory) { return free(memory), 0; }
int cudaFreeAsync(void *memory, void *stream) {
  // Each launch of the graph has the memory at the same place.
  if (is_captured(stream)) append(capturing, {nullptr, kept_memory, nullptr, memory});
  else free(memory);
  return 0;
}
int cudaHostRegister(void *, size_t, unsigned) { return 0; }
int cudaHostUnregister(void *) { return 0; }
int cudaHostGetDevicePointer(void **device, void *host, unsigned) { return *device = host, 0; }
int cudaMemGetInfo(size_t *available, size_t *total) { return *available = *total = (size_t)16 << 30, 0; }
int cudaMemPrefetchAsync(const void *, size_t, int, void *) { return 0; }
int cudaMemAdvise(const void *, size_t, int, int) { return 0; }

int cudaMemcpy(void *to, const void *from, size_t size, int) { return copy(to, from, size); }
int cudaMemcpyAsync(void *to, const void *from, size_t size, int, void *stream) {
  return copy_in_order(to, from, size, stream);
}
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height);
}
int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int,
                      void *stream) {
  return copy_rows_in_order(to, to_pitch, from, from_pitch, width, height, stream);
}
int cudaMemset(void *to, int byte, size_t size) {
  __je_done_at_once();
  return memset(to, byte, size), 0;
}
int cudaMemsetAsync(void *to, int byte, size_t size, void *stream) {
  if (is_captured(stream)) append(capturing, {nullptr, filled_rows, nullptr, to, nullptr, 0, 0, size, 1, byte});
  else memset(to, byte, size);
  return 0;
}
int cudaMemset2D(void *to, size_t pitch, int byte, size_t width, size_t height) {
  __je_done_at_once();
  return fill_rows(to, pitch, byte, width, height), 0;
}
int cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width, size_t height, void *stream) {
  if (is_captured(stream))
    append(capturing, {nullptr, filled_rows, nullptr, to, nullptr, pitch, 0, width, height, byte});
  else fill_rows(to, pitch, byte, width, height);
  return 0;
}
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int) {
  return copy((char *)symbol + offset, from, size);
}
int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, int) {
  return copy(to, (const char *)symbol + offset, size);
}
int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset, int, void *stream) {
  return copy_in_order((char *)symbol + offset, from, size, stream);
}
int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset, int, void *stream) {
  return copy_in_order(to, (const char *)symbol + offset, size, stream);
}
int cudaPointerGetAttributes(cudaPointerAttributes *found, const void *memory) {
  // All memory is managed: host and device reach it by the same address.
  *found = {cudaMemoryTypeManaged, 0, (void *)memory, (void *)memory};
  return 0;
}
int cudaGetSymbolAddress(void **place, const void *symbol) { return *place = (void *)symbol, 0; }

int cudaGetLastError() { return 0; }
int cudaPeekAtLastError() { return 0; }
const char *cudaGetErrorString(int error) { return error ? "an error" : "no error"; }
const char *cudaGetErrorName(int error) { return error ? "cudaErrorUnknown" : "cudaSuccess"; }
int cudaDeviceSynchronize() { return 0; }
int cudaThreadSynchronize() { return 0; }
int cudaDeviceReset() { return 0; }
int cudaThreadExit() { return 0; }
int cudaSetDevice(int device) { return device ? 101 : 0; }
int cudaGetDevice(int *device) { return *device = 0; }
int cudaGetDeviceCount(int *count) { return *count = 1, 0; }
int cudaSetDeviceFlags(unsigned) { return 0; }
int cudaGetDeviceProperties(cudaDeviceProp *found, int device) {
  if (device) return invalid_value;
  memset(found, 0, sizeof *found);
  memcpy(found->name, "CPU", 4);
  found->totalGlobalMem = (size_t)16 << 30;
  found->sharedMemPerBlock = attribute(8);
  found->sharedMemPerBlockOptin = found->sharedMemPerMultiprocessor = attribute(97);
  found->totalConstMem = attribute(9);
  found->regsPerBlock = found->regsPerMultiprocessor = attribute(12);
  found->warpSize = attribute(10);
  found->maxThreadsPerBlock = found->maxThreadsDim[0] = found->maxThreadsDim[1] = 1024;
  found->maxThreadsDim[2] = 64;
  found->maxGridSize[0] = attribute(5);
  found->maxGridSize[1] = found->maxGridSize[2] = attribute(6);
  found->clockRate = found->memoryClockRate = attribute(13);
  found->major = attribute(75);
  found->multiProcessorCount = attribute(16);
  found->maxThreadsPerMultiProcessor = attribute(39);
  found->canMapHostMemory = found->concurrentKernels = found->unifiedAddressing = found->managedMemory = 1;
  found->concurrentManagedAccess = 1;
  return 0;
}
int cudaDeviceGetAttribute(int *value, int number, int) { return *value = attribute(number), 0; }
int cudaDeviceSetCacheConfig(int) { return 0; }
int cudaDeviceSetSharedMemConfig(int) { return 0; }
int cudaDeviceSetLimit(int, size_t) { return 0; }
int cudaDriverGetVersion(int *version) { return *version = 12090, 0; }
int cudaRuntimeGetVersion(int *version) { return *version = 12090, 0; }
int cudaFuncSetCacheConfig(const void *, int) { return 0; }
int cudaFuncSetAttribute(const void *, int, int) { return 0; }
int cudaFuncGetAttributes(cudaFuncAttributes *found, const void *) {
  memset(found, 0, sizeof *found);
  found->maxThreadsPerBlock = 1024;
  found->numRegs = 32;
  found->ptxVersion = found->binaryVersion = 10 * attribute(75);
  found->maxDynamicSharedSizeBytes = attribute(8);
  return 0;
}
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { return *least = *greatest = 0, 0; }
int cudaChooseDevice(int *device, const cudaDeviceProp *) { return *device = 0, 0; }
int cudaProfilerStart() { return 0; }
int cudaProfilerStop() { return 0; }

int cudaStreamCreate(void **stream) { return *stream = &handles[streams++ % most_streams], 0; }
int cudaStreamCreateWithFlags(void **stream, unsigned) { return cudaStreamCreate(stream); }
int cudaStreamCreateWithPriority(void **stream, unsigned, int) { return cudaStreamCreate(stream); }
int cudaStreamDestroy(void *) { return 0; }
int cudaStreamGetFlags(void *, unsigned *flags) { return *flags = 0, 0; }
int cudaStreamGetPriority(void *, int *priority) { return *priority = 0, 0; }
int cudaStreamSynchronize(void *) { return 0; }
int cudaStreamQuery(void *) { return 0; }
int cudaStreamWaitEvent(void *stream, void *, unsigned) {
  if (capturing && !is_captured(stream)) join(stream);
  return 0;
}
int cudaStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *data, unsigned) {
  if (is_captured(stream)) __je_done_at_once();
  function(stream, 0, data);
  return 0;
}
int cudaStreamAttachMemAsync(void *, void *, size_t, unsigned) { return 0; }
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
  if (is_captured(stream)) {
    Node node = {nullptr, call_of_host, data};
    node.function = function;
    append(capturing, node);
    return 0;
  }
  function(data);
  return 0;
}
int cudaEventCreate(void **event) { return *event = nullptr, 0; }
int cudaEventCreateWithFlags(void **event, unsigned) { return *event = nullptr, 0; }
int cudaEventDestroy(void *) { return 0; }
int cudaEventRecord(void *, void *) { return 0; }
int cudaEventSynchronize(void *) { return 0; }
int cudaEventQuery(void *) { return 0; }
int cudaEventElapsedTime(float *milliseconds, void *, void *) { return *milliseconds = 0.0f, 0; }

}  // extern "C"
