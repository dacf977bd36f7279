// Texture references, which CUDA had before texture objects: variables at file scope, that a host function binds to memory
// and kernels read, integers as numbers between -1 and 1 too. Clang shows the device no more than eight bytes of one; on the
// CPU it is the host's variable.
#pragma once

#define cudaTextureType1D 1
#define cudaTextureType2D 2
#define cudaTextureType3D 3

struct textureReference {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  cudaTextureObject_t __je_bound;
  constexpr textureReference(int normalized, cudaTextureFilterMode filter, cudaTextureAddressMode address,
                             const cudaChannelFormatDesc &element)
      : normalized(normalized), filterMode(filter), addressMode{address, address, address}, channelDesc(element), sRGB(0),
        __je_bound(0) {}
};

template <class T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture : textureReference {
  constexpr texture(int normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
                    cudaTextureAddressMode address = cudaAddressModeClamp)
      : texture(normalized, filter, address, {8 * (int)sizeof(T), 0, 0, 0, cudaChannelFormatKindFloat}) {}
  constexpr texture(int normalized, cudaTextureFilterMode filter, cudaTextureAddressMode address,
                    const cudaChannelFormatDesc &element)
      : textureReference(normalized, filter, address, element) {}
};

// C++'s functions take a texture, and may do without a description of its elements; C's take pointers to both.
inline cudaError_t __je_bind(const textureReference &texture, const cudaResourceDesc &memory) {
  cudaTextureDesc how = {};
  for (int i = 0; i < 3; i++) how.addressMode[i] = texture.addressMode[i];
  how.filterMode = texture.filterMode;
  how.readMode = cudaReadModeElementType;
  how.normalizedCoords = texture.normalized;
  return cudaCreateTextureObject(const_cast<cudaTextureObject_t *>(&texture.__je_bound), &memory, &how);
}
inline cudaError_t cudaBindTexture(size_t *offset, const textureReference *texture, const void *p,
                                   const cudaChannelFormatDesc *element, size_t n = UINT_MAX) {
  cudaResourceDesc memory = {};
  memory.resType = cudaResourceTypeLinear;
  memory.res.linear = {const_cast<void *>(p), *element, n};
  if (offset) *offset = 0;
  return __je_bind(*texture, memory);
}
inline cudaError_t cudaBindTexture(size_t *offset, const textureReference &texture, const void *p,
                                   const cudaChannelFormatDesc &element, size_t n = UINT_MAX) {
  return cudaBindTexture(offset, &texture, p, &element, n);
}
inline cudaError_t cudaBindTexture(size_t *offset, const textureReference &texture, const void *p, size_t n = UINT_MAX) {
  return cudaBindTexture(offset, &texture, p, &texture.channelDesc, n);
}
inline cudaError_t cudaBindTexture2D(size_t *offset, const textureReference *texture, const void *p,
                                     const cudaChannelFormatDesc *element, size_t width, size_t height, size_t pitch) {
  cudaResourceDesc memory = {};
  memory.resType = cudaResourceTypePitch2D;
  memory.res.pitch2D = {const_cast<void *>(p), *element, width, height, pitch};
  if (offset) *offset = 0;
  return __je_bind(*texture, memory);
}
inline cudaError_t cudaBindTexture2D(size_t *offset, const textureReference &texture, const void *p,
                                     const cudaChannelFormatDesc &element, size_t width, size_t height, size_t pitch) {
  return cudaBindTexture2D(offset, &texture, p, &element, width, height, pitch);
}
inline cudaError_t cudaBindTexture2D(size_t *offset, const textureReference &texture, const void *p, size_t width,
                                     size_t height, size_t pitch) {
  return cudaBindTexture2D(offset, &texture, p, &texture.channelDesc, width, height, pitch);
}
inline cudaError_t cudaBindTextureToArray(const textureReference *texture, cudaArray_const_t array,
                                          const cudaChannelFormatDesc * = nullptr) {
  cudaResourceDesc memory = {};
  memory.resType = cudaResourceTypeArray;
  memory.res.array.array = const_cast<cudaArray_t>(array);
  return __je_bind(*texture, memory);
}
inline cudaError_t cudaBindTextureToArray(const textureReference &texture, cudaArray_const_t array) {
  return cudaBindTextureToArray(&texture, array);
}
inline cudaError_t cudaBindTextureToArray(const textureReference &texture, cudaArray_const_t array,
                                          const cudaChannelFormatDesc &) {
  return cudaBindTextureToArray(&texture, array);
}
inline cudaError_t cudaUnbindTexture(const textureReference *) { return cudaSuccess; }
inline cudaError_t cudaUnbindTexture(const textureReference &) { return cudaSuccess; }


// What a texture gives: its elements, or fractions of the largest integer.
template <class T, cudaTextureReadMode m> struct __je_texel { typedef T type; };
#define __JE_FRACTIONS(T, name, largest)                                                            \
  template <> struct __je_texel<T, cudaReadModeNormalizedFloat> { typedef float type; };            \
  template <> struct __je_texel<name##1, cudaReadModeNormalizedFloat> { typedef float1 type; };     \
  template <> struct __je_texel<name##2, cudaReadModeNormalizedFloat> { typedef float2 type; };     \
  template <> struct __je_texel<name##4, cudaReadModeNormalizedFloat> { typedef float4 type; };     \
  __JE void __je_give(float &to, T x) { to = fmaxf(x / largest, -1.0f); }                           \
  __JE void __je_give(float1 &to, name##1 v) { __je_give(to.x, v.x); }                              \
  __JE void __je_give(float2 &to, name##2 v) { __je_give(to.x, v.x), __je_give(to.y, v.y); }        \
  __JE void __je_give(float4 &to, name##4 v) {                                                      \
    __je_give(to.x, v.x), __je_give(to.y, v.y), __je_give(to.z, v.z), __je_give(to.w, v.w);         \
  }
__JE_FRACTIONS(unsigned char, uchar, 255.0f)
__JE_FRACTIONS(signed char, char, 127.0f)
__JE_FRACTIONS(unsigned short, ushort, 65535.0f)
__JE_FRACTIONS(short, short, 32767.0f)
#undef __JE_FRACTIONS

#define __JE_READ template <class T, cudaTextureReadMode m, class R = typename __je_texel<T, m>::type> __JE R
__JE_READ tex1Dfetch(const texture<T, 1, m> &texture, int x) {
  return __je_fetched<R, T>(texture.__je_bound, x < texture.__je_bound.__je_width ? x : -1, 0);
}
__JE_READ tex1D(const texture<T, 1, m> &texture, float x) { return __je_in_row<R, T>(texture.__je_bound, x, 0); }
__JE_READ tex2D(const texture<T, 2, m> &texture, float x, float y) {
  return __je_in_layer<R, T>(texture.__je_bound, x, y, 0);
}
__JE_READ tex3D(const texture<T, 3, m> &texture, float x, float y, float z) {
  return __je_in_space<R, T>(texture.__je_bound, x, y, z);
}
#undef __JE_READ
