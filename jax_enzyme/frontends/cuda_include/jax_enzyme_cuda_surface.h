// Surface objects: arrays that kernels read and write by the byte in a row, as structures that know their memory.
#pragma once

enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };

struct cudaSurfaceObject_t {
  char *__je_data;
  long long __je_pitch, __je_height, __je_depth;
  cudaSurfaceObject_t() = default;
  __attribute__((host, device)) constexpr cudaSurfaceObject_t(unsigned long long)
      : __je_data(0), __je_pitch(0), __je_height(0), __je_depth(0) {}
};

inline cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const cudaResourceDesc *memory) {
  if (memory->resType != cudaResourceTypeArray) return cudaErrorInvalidValue;
  const cudaArray *from = memory->res.array.array;
  surface->__je_data = (char *)from->data;
  surface->__je_pitch = from->width * from->size;
  surface->__je_height = from->height;
  surface->__je_depth = from->depth;
  return cudaSuccess;
}
inline cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t) { return cudaSuccess; }

// The place of number `at` of n; less than 0 where there is none.
__JE long long __je_on_surface(long long at, long long n, cudaSurfaceBoundaryMode mode) {
  if (at >= 0 && at < n) return at;
  if (mode == cudaBoundaryModeTrap) __builtin_trap();
  return mode == cudaBoundaryModeZero ? -1 : at < 0 ? 0 : n - 1;
}
// Where the element lies whose first byte is number `x` of its row; null where there is none.
template <class T>
__JE T *__je_surface_place(const cudaSurfaceObject_t &surface, int x, int y, int z, cudaSurfaceBoundaryMode mode) {
  int size = sizeof(T);
  long long column = __je_on_surface(x < 0 ? -1 : x / size, surface.__je_pitch / size, mode);
  long long row = __je_on_surface(y, surface.__je_height, mode), layer = __je_on_surface(z, surface.__je_depth, mode);
  if (column < 0 || row < 0 || layer < 0) return nullptr;
  return (T *)(surface.__je_data + (layer * surface.__je_height + row) * surface.__je_pitch) + column;
}
template <class T>
__JE T __je_surface_read(const cudaSurfaceObject_t &surface, int x, int y, int z, cudaSurfaceBoundaryMode mode) {
  const T *place = __je_surface_place<T>(surface, x, y, z, mode);
  T found{};
  if (place) found = *place;
  return found;
}
template <class T>
__JE void __je_surface_write(T value, const cudaSurfaceObject_t &surface, int x, int y, int z, cudaSurfaceBoundaryMode mode) {
  T *place = __je_surface_place<T>(surface, x, y, z, mode);
  if (place) *place = value;
}
template <class T>
__JE T surf1Dread(cudaSurfaceObject_t surface, int x, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  return __je_surface_read<T>(surface, x, 0, 0, mode);
}
template <class T>
__JE void surf1Dread(T *to, cudaSurfaceObject_t surface, int x, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  *to = __je_surface_read<T>(surface, x, 0, 0, mode);
}
template <class T>
__JE void surf1Dwrite(T value, cudaSurfaceObject_t surface, int x, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  __je_surface_write<T>(value, surface, x, 0, 0, mode);
}
template <class T>
__JE T surf2Dread(cudaSurfaceObject_t surface, int x, int y, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  return __je_surface_read<T>(surface, x, y, 0, mode);
}
template <class T>
__JE void surf2Dread(T *to, cudaSurfaceObject_t surface, int x, int y, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  *to = __je_surface_read<T>(surface, x, y, 0, mode);
}
template <class T>
__JE void surf2Dwrite(T value, cudaSurfaceObject_t surface, int x, int y, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  __je_surface_write<T>(value, surface, x, y, 0, mode);
}
template <class T>
__JE T surf3Dread(cudaSurfaceObject_t surface, int x, int y, int z, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  return __je_surface_read<T>(surface, x, y, z, mode);
}
template <class T>
__JE void surf3Dread(T *to, cudaSurfaceObject_t surface, int x, int y, int z, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  *to = __je_surface_read<T>(surface, x, y, z, mode);
}
template <class T>
__JE void surf3Dwrite(T value, cudaSurfaceObject_t surface, int x, int y, int z, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {
  __je_surface_write<T>(value, surface, x, y, z, mode);
}
