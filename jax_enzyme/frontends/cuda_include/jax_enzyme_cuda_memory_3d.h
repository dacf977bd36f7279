// Memory in three dimensions, and arrays, which textures read: on the CPU rows one after the other.
#pragma once

struct cudaPitchedPtr { void *ptr; size_t pitch, xsize, ysize; };
struct cudaExtent { size_t width, height, depth; };
struct cudaPos { size_t x, y, z; };
inline cudaPitchedPtr make_cudaPitchedPtr(void *p, size_t pitch, size_t x, size_t y) { return {p, pitch, x, y}; }
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) { return {width, height, depth}; }
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned,
  cudaChannelFormatKindUnsigned,
  cudaChannelFormatKindFloat,
  cudaChannelFormatKindNone
};
struct cudaChannelFormatDesc { int x, y, z, w; cudaChannelFormatKind f; };
struct cudaArray { void *data; size_t width, height, depth, size; };
typedef cudaArray *cudaArray_t;
typedef const cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
#define cudaArrayDefault 0u
#define cudaArrayLayered 1u
#define cudaArraySurfaceLoadStore 2u
#define cudaArrayCubemap 4u
#define cudaArrayTextureGather 8u
struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};

extern "C" cudaError_t cudaMalloc3DArray_of_layers();  // declared, and refused
inline cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *kind, cudaExtent extent,
                                     unsigned flags = 0) {
  if (flags & (cudaArrayLayered | cudaArrayCubemap)) return cudaMalloc3DArray_of_layers();
  size_t size = (kind->x + kind->y + kind->z + kind->w) / 8;
  cudaArray *made = (cudaArray *)malloc(sizeof(cudaArray));
  made->width = extent.width;
  made->height = extent.height ? extent.height : 1;
  made->depth = extent.depth ? extent.depth : 1;
  made->size = size;
  *array = made;
  return cudaMalloc(&made->data, made->width * made->height * made->depth * size);
}
inline cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *kind, size_t width,
                                   size_t height = 0, unsigned = 0) {
  return cudaMalloc3DArray(array, kind, {width, height, 0});
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
inline cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                         size_t width, size_t height, cudaMemcpyKind kind) {
  size_t row = from->width * from->size;
  return cudaMemcpy2D(to, pitch, (const char *)from->data + y * row + x, row, width, height, kind);
}
inline cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t n,
                                     cudaMemcpyKind kind) {
  return cudaMemcpy((char *)to->data + y * to->width * to->size + x, from, n, kind);
}
inline cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t n,
                                       cudaMemcpyKind kind) {
  return cudaMemcpy(to, (const char *)from->data + y * from->width * from->size + x, n, kind);
}

inline cudaError_t cudaMalloc3D(cudaPitchedPtr *made, cudaExtent extent) {
  made->xsize = extent.width;
  made->ysize = extent.height;
  return cudaMallocPitch(&made->ptr, &made->pitch, extent.width, extent.height * extent.depth);
}
inline cudaError_t cudaMemset3D(cudaPitchedPtr to, int byte, cudaExtent extent) {
  for (size_t z = 0; z < extent.depth; z++)
    cudaMemset2D((char *)to.ptr + z * to.ysize * to.pitch, to.pitch, byte, extent.width, extent.height);
  return cudaSuccess;
}
// A copy of planes of rows, in bytes.
struct __je_planes {
  char *to;
  const char *from;
  size_t to_pitch, to_plane, from_pitch, from_plane, width, height, depth;
  // Positions and extents count elements where there is an array, and bytes elsewhere.
  explicit __je_planes(const cudaMemcpy3DParms *p) {
    size_t size = p->srcArray ? p->srcArray->size : p->dstArray ? p->dstArray->size : 1;
    cudaPitchedPtr source = p->srcPtr, target = p->dstPtr;
    size_t from_x = p->srcPos.x, to_x = p->dstPos.x;
    if (cudaArray_t a = p->srcArray) source = {a->data, a->width * size, a->width, a->height}, from_x *= size;
    if (cudaArray_t a = p->dstArray) target = {a->data, a->width * size, a->width, a->height}, to_x *= size;
    from_pitch = source.pitch, from_plane = source.ysize * source.pitch;
    to_pitch = target.pitch, to_plane = target.ysize * target.pitch;
    from = (const char *)source.ptr + p->srcPos.z * from_plane + p->srcPos.y * from_pitch + from_x;
    to = (char *)target.ptr + p->dstPos.z * to_plane + p->dstPos.y * to_pitch + to_x;
    width = p->extent.width * size, height = p->extent.height, depth = p->extent.depth;
  }
};
inline cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p) {
  __je_planes c(p);
  for (size_t z = 0; z < c.depth; z++)
    cudaMemcpy2D(c.to + z * c.to_plane, c.to_pitch, c.from + z * c.from_plane, c.from_pitch, c.width, c.height,
                 p->kind);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream = 0) {
  __je_planes c(p);
  for (size_t z = 0; z < c.depth; z++)
    cudaMemcpy2DAsync(c.to + z * c.to_plane, c.to_pitch, c.from + z * c.from_plane, c.from_pitch, c.width, c.height,
                      p->kind, stream);
  return cudaSuccess;
}
inline cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *, size_t,
                                          const cudaMemcpy3DParms *p) {
  __je_planes c(p);
  if (!c.depth) c.width = 0;
  return __je_graph_copy(made, graph, c.to, c.to_pitch, c.to_plane, c.from, c.from_pitch, c.from_plane, c.width,
                         c.height, c.depth);
}
