// Textures that are plain fetches: of linear memory, of rows with a pitch, and of arrays, without interpolation. A
// texture is a structure that knows its memory, so that derivatives go through it. What it cannot do is declared and not
// defined, and refused where a host function may come to it.
#pragma once

enum cudaResourceType { cudaResourceTypeArray, cudaResourceTypeMipmappedArray, cudaResourceTypeLinear, cudaResourceTypePitch2D };
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned,
  cudaChannelFormatKindUnsigned,
  cudaChannelFormatKindFloat,
  cudaChannelFormatKindNone
};
struct cudaChannelFormatDesc { int x, y, z, w; cudaChannelFormatKind f; };
struct cudaArray { void *data; size_t width, height, size; };
typedef cudaArray *cudaArray_t;
typedef const cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
#define cudaArrayDefault 0u

struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct { cudaArray_t array; } array;
    struct { cudaMipmappedArray_t mipmap; } mipmap;
    struct { void *devPtr; cudaChannelFormatDesc desc; size_t sizeInBytes; } linear;
    struct { void *devPtr; cudaChannelFormatDesc desc; size_t width, height, pitchInBytes; } pitch2D;
  } res;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
};
struct cudaResourceViewDesc { int format; size_t width, height, depth; };

struct cudaTextureObject_t {
  const char *__je_data;
  long long __je_width, __je_height, __je_pitch;
  int __je_x_mode, __je_y_mode, __je_normalized;
  cudaTextureObject_t() = default;
  __attribute__((host, device)) constexpr cudaTextureObject_t(unsigned long long)
      : __je_data(0), __je_width(0), __je_height(0), __je_pitch(0), __je_x_mode(0), __je_y_mode(0), __je_normalized(0) {}
};

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
template <class T> constexpr int __je_channels = 1;
#define __JE_CHANNELS(name)                    \
  template <> constexpr int __je_channels<name##2> = 2; \
  template <> constexpr int __je_channels<name##4> = 4;
__JE_CHANNELS(char) __JE_CHANNELS(uchar) __JE_CHANNELS(short) __JE_CHANNELS(ushort)
__JE_CHANNELS(int) __JE_CHANNELS(uint) __JE_CHANNELS(float)
#undef __JE_CHANNELS
template <class T> cudaChannelFormatDesc cudaCreateChannelDesc() {
  constexpr int n = __je_channels<T>, bits = 8 * sizeof(T) / n;
  return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 2 ? bits : 0, cudaChannelFormatKindFloat};
}

// Declared, and refused.
extern "C" {
cudaError_t cudaCreateTextureObject_that_interpolates();
cudaError_t cudaCreateTextureObject_of_normalized_integers();
cudaError_t cudaCreateTextureObject_of_mipmaps();
cudaError_t cudaMalloc3DArray(cudaArray_t *, const cudaChannelFormatDesc *, cudaExtent, unsigned = 0);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *, const cudaResourceDesc *);
}

inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *memory,
                                           const cudaTextureDesc *how, const cudaResourceViewDesc * = nullptr) {
  if (how->filterMode != cudaFilterModePoint && memory->resType != cudaResourceTypeLinear)
    return cudaCreateTextureObject_that_interpolates();
  if (how->readMode != cudaReadModeElementType) return cudaCreateTextureObject_of_normalized_integers();
  texture->__je_x_mode = how->addressMode[0];
  texture->__je_y_mode = how->addressMode[1];
  texture->__je_normalized = how->normalizedCoords;
  switch (memory->resType) {
    case cudaResourceTypeLinear: {
      const auto &from = memory->res.linear;
      int bytes = (from.desc.x + from.desc.y + from.desc.z + from.desc.w) / 8;
      texture->__je_data = (const char *)from.devPtr;
      texture->__je_width = from.sizeInBytes / bytes;
      texture->__je_height = 1;
      texture->__je_pitch = from.sizeInBytes;
      return cudaSuccess;
    }
    case cudaResourceTypePitch2D: {
      const auto &from = memory->res.pitch2D;
      texture->__je_data = (const char *)from.devPtr;
      texture->__je_width = from.width;
      texture->__je_height = from.height;
      texture->__je_pitch = from.pitchInBytes;
      return cudaSuccess;
    }
    case cudaResourceTypeArray: {
      const cudaArray *from = memory->res.array.array;
      texture->__je_data = (const char *)from->data;
      texture->__je_width = from->width;
      texture->__je_height = from->height;
      texture->__je_pitch = from->width * from->size;
      return cudaSuccess;
    }
    default: return cudaCreateTextureObject_of_mipmaps();
  }
}
inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t) { return cudaSuccess; }

inline cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *kind, size_t width,
                                   size_t height = 0, unsigned = 0) {
  size_t size = (kind->x + kind->y + kind->z + kind->w) / 8, rows = height ? height : 1;
  cudaArray *made = (cudaArray *)malloc(sizeof(cudaArray));
  made->width = width;
  made->height = rows;
  made->size = size;
  *array = made;
  return cudaMalloc(&made->data, width * rows * size);
}
inline cudaError_t cudaFreeArray(cudaArray_t array) {
  cudaFree(array->data);
  free(array);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                       size_t height, cudaMemcpyKind kind) {
  size_t row = to->width * to->size;
  return cudaMemcpy2D((char *)to->data + y * row + x, row, from, pitch, width, height, kind);
}
inline cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t n,
                                     cudaMemcpyKind kind) {
  return cudaMemcpy((char *)to->data + y * to->width * to->size + x, from, n, kind);
}

// The place of a coordinate among n; less than 0 where the border's zeros are.
__JE long long __je_place(float at, long long n, int mode, int normalized) {
  if (normalized) {
    if (mode == cudaAddressModeWrap) at -= floorf(at);
    if (mode == cudaAddressModeMirror) {
      float whole = floorf(at);
      at = (long long)whole & 1 ? whole + 1 - at : at - whole;
    }
    at *= n;
  }
  long long place = (long long)floorf(at);
  if (mode == cudaAddressModeBorder) return place < n ? place : -1;
  return place < 0 ? 0 : place < n ? place : n - 1;
}
template <class T> __JE T __je_fetched(const cudaTextureObject_t &texture, long long x, long long y) {
  if (x < 0 || y < 0) return T{};
  return ((const T *)(texture.__je_data + y * texture.__je_pitch))[x];
}
template <class T> __JE T tex1Dfetch(cudaTextureObject_t texture, int x) {
  return __je_fetched<T>(texture, x < texture.__je_width ? x : -1, 0);
}
template <class T> __JE T tex1D(cudaTextureObject_t texture, float x) {
  long long n = texture.__je_width;
  return __je_fetched<T>(texture, __je_place(x, n, texture.__je_x_mode, texture.__je_normalized), 0);
}
template <class T> __JE T tex2D(cudaTextureObject_t texture, float x, float y) {
  long long column = __je_place(x, texture.__je_width, texture.__je_x_mode, texture.__je_normalized);
  return __je_fetched<T>(texture, column, __je_place(y, texture.__je_height, texture.__je_y_mode, texture.__je_normalized));
}
template <class T> __JE void tex1Dfetch(T *to, cudaTextureObject_t texture, int x) { *to = tex1Dfetch<T>(texture, x); }
template <class T> __JE void tex1D(T *to, cudaTextureObject_t texture, float x) { *to = tex1D<T>(texture, x); }
template <class T> __JE void tex2D(T *to, cudaTextureObject_t texture, float x, float y) {
  *to = tex2D<T>(texture, x, y);
}
