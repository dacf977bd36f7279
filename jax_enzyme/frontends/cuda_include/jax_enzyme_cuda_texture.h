// Textures of linear memory, of rows with a pitch, and of arrays: the nearest element, or one that is interpolated with
// weights that are not rounded. A texture is a structure that knows its memory, so that derivatives go through it. What it
// cannot do is declared and not defined, and refused where a host function may come to it.
#pragma once

enum cudaResourceType { cudaResourceTypeArray, cudaResourceTypeMipmappedArray, cudaResourceTypeLinear, cudaResourceTypePitch2D };
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };

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
  long long __je_width, __je_height, __je_depth, __je_pitch;
  int __je_modes[3], __je_normalized, __je_linear;
  cudaTextureObject_t() = default;
  __attribute__((host, device)) constexpr cudaTextureObject_t(unsigned long long)
      : __je_data(0), __je_width(0), __je_height(0), __je_depth(0), __je_pitch(0), __je_modes{}, __je_normalized(0),
        __je_linear(0) {}
};

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
template <class T> struct __je_channels {
  enum { count = 1 };
};
#define __JE_CHANNELS(name)                                  \
  template <> struct __je_channels<name##2> { enum { count = 2 }; }; \
  template <> struct __je_channels<name##4> { enum { count = 4 }; };
__JE_CHANNELS(char) __JE_CHANNELS(uchar) __JE_CHANNELS(short) __JE_CHANNELS(ushort)
__JE_CHANNELS(int) __JE_CHANNELS(uint) __JE_CHANNELS(float)
#undef __JE_CHANNELS
template <class T> cudaChannelFormatDesc cudaCreateChannelDesc() {
  constexpr int n = __je_channels<T>::count, bits = 8 * sizeof(T) / n;
  return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 2 ? bits : 0, cudaChannelFormatKindFloat};
}

// Declared, and refused.
extern "C" {
cudaError_t cudaCreateTextureObject_of_normalized_integers();
cudaError_t cudaCreateTextureObject_of_mipmaps();
}

inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *memory,
                                           const cudaTextureDesc *how, const cudaResourceViewDesc * = nullptr) {
  if (how->readMode != cudaReadModeElementType) return cudaCreateTextureObject_of_normalized_integers();
  for (int i = 0; i < 3; i++) texture->__je_modes[i] = how->addressMode[i];
  texture->__je_depth = 1;
  texture->__je_normalized = how->normalizedCoords;
  texture->__je_linear = how->filterMode == cudaFilterModeLinear && memory->resType != cudaResourceTypeLinear;
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
      texture->__je_depth = from->depth;
      texture->__je_pitch = from->width * from->size;
      return cudaSuccess;
    }
    default: return cudaCreateTextureObject_of_mipmaps();
  }
}
inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t) { return cudaSuccess; }

// A coordinate in elements, of which there are n.
__JE float __je_coordinate(float at, long long n, int mode, int normalized) {
  if (!normalized) return at;
  if (mode == cudaAddressModeWrap) at -= floorf(at);
  if (mode == cudaAddressModeMirror) {
    float whole = floorf(at);
    at = (long long)whole & 1 ? whole + 1 - at : at - whole;
  }
  return at * n;
}
// The place of element number `place`; less than 0 where the border's zeros are.
__JE long long __je_place(long long place, long long n, int mode, int normalized) {
  if (mode == cudaAddressModeBorder) return place < n ? place : -1;
  if (mode == cudaAddressModeWrap && normalized) return place < 0 ? n - 1 : place < n ? place : 0;
  return place < 0 ? 0 : place < n ? place : n - 1;
}
__JE float __je_mixed(float a, float b, float w) { return a + w * (b - a); }
__JE float1 __je_mixed(float1 a, float1 b, float w) { return {__je_mixed(a.x, b.x, w)}; }
__JE float2 __je_mixed(float2 a, float2 b, float w) { return {__je_mixed(a.x, b.x, w), __je_mixed(a.y, b.y, w)}; }
__JE float4 __je_mixed(float4 a, float4 b, float w) {
  return {__je_mixed(a.x, b.x, w), __je_mixed(a.y, b.y, w), __je_mixed(a.z, b.z, w), __je_mixed(a.w, b.w, w)};
}
// Integers are not interpolated.
template <class T> __JE T __je_mixed(T a, T, float) { return a; }

// An element, of type T in memory.
template <class T> __JE void __je_give(T &to, T element) { to = element; }
template <class R, class T = R> __JE R __je_fetched(const cudaTextureObject_t &texture, long long x, long long y) {
  R found{};
  if (x >= 0 && y >= 0) __je_give(found, ((const T *)(texture.__je_data + y * texture.__je_pitch))[x]);
  return found;
}
// Along one axis, of n elements, of which `fetched(i)` gives one: the nearest, or between two of them.
template <class R, class F> __JE R __je_along(const cudaTextureObject_t &texture, float x, long long n, int mode, F fetched) {
  int normalized = texture.__je_normalized;
  float at = __je_coordinate(x, n, mode, normalized) - (texture.__je_linear ? 0.5f : 0.0f), first = floorf(at);
  long long place = (long long)first;
  R left = fetched(__je_place(place, n, mode, normalized));
  if (!texture.__je_linear) return left;
  return __je_mixed(left, fetched(__je_place(place + 1, n, mode, normalized)), at - first);
}
template <class R, class T = R> __JE R __je_in_row(const cudaTextureObject_t &texture, float x, long long row) {
  return __je_along<R>(texture, x, texture.__je_width, texture.__je_modes[0],
                       [&](long long column) { return __je_fetched<R, T>(texture, column, row); });
}
// In the layer whose first row is `first`.
template <class R, class T = R>
__JE R __je_in_layer(const cudaTextureObject_t &texture, float x, float y, long long first) {
  return __je_along<R>(texture, y, texture.__je_height, texture.__je_modes[1], [&](long long row) {
    return __je_in_row<R, T>(texture, x, row < 0 ? -1 : first + row);
  });
}
template <class R, class T = R> __JE R __je_in_space(const cudaTextureObject_t &texture, float x, float y, float z) {
  return __je_along<R>(texture, z, texture.__je_depth, texture.__je_modes[2], [&](long long layer) {
    return layer < 0 ? R{} : __je_in_layer<R, T>(texture, x, y, layer * texture.__je_height);
  });
}
template <class T> __JE T tex1Dfetch(cudaTextureObject_t texture, int x) {
  return __je_fetched<T>(texture, x < texture.__je_width ? x : -1, 0);
}
template <class T> __JE T tex1D(cudaTextureObject_t texture, float x) { return __je_in_row<T>(texture, x, 0); }
template <class T> __JE T tex2D(cudaTextureObject_t texture, float x, float y) {
  return __je_in_layer<T>(texture, x, y, 0);
}
template <class T> __JE T tex3D(cudaTextureObject_t texture, float x, float y, float z) {
  return __je_in_space<T>(texture, x, y, z);
}
template <class T> __JE void tex1Dfetch(T *to, cudaTextureObject_t texture, int x) { *to = tex1Dfetch<T>(texture, x); }
template <class T> __JE void tex1D(T *to, cudaTextureObject_t texture, float x) { *to = tex1D<T>(texture, x); }
template <class T> __JE void tex2D(T *to, cudaTextureObject_t texture, float x, float y) {
  *to = tex2D<T>(texture, x, y);
}
template <class T> __JE void tex3D(T *to, cudaTextureObject_t texture, float x, float y, float z) {
  *to = tex3D<T>(texture, x, y, z);
}
