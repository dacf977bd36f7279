// Graphs: what a stream captures, in two streams but not in a third one, with pointers that change places, launched
// often; nodes by hand; an update of what was instantiated.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <utility>
struct Step {
  double dt;
  int n;
};
__global__ void flow(const double *u, double *v, Step step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < step.n) v[i] = u[i] + step.dt * sin(u[i]) * u[i ? i - 1 : step.n - 1];
}
__global__ void add(double *u, const double *force, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) u[i] += force[i];
}

void captured(double *x, const double *force, int n, int steps, double dt) {
  double *u, *v, *f;
  cudaMalloc(&u, n * sizeof(double));
  cudaMalloc(&v, n * sizeof(double));
  cudaMemcpy(u, x, n * sizeof(double), cudaMemcpyHostToDevice);
  cudaStream_t stream, other, apart;
  cudaEvent_t fork, join;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking);
  cudaEventCreate(&fork);
  cudaEventCreate(&join);
  bool made = false;
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  for (int s = 0; s < steps; s++) {
    if (!made) {
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
      add<<<(n + 63) / 64, 64, 0, apart>>>(u, u, n);  // once, at once
      cudaEventRecord(fork, stream);
      cudaStreamWaitEvent(other, fork, 0);
      cudaMallocAsync(&f, n * sizeof(double), other);
      cudaMemcpyAsync(f, force, n * sizeof(double), cudaMemcpyHostToDevice, other);
      cudaEventRecord(join, other);
      double *from = u, *to = v;
      for (int k = 0; k < 2; k++, std::swap(from, to)) flow<<<(n + 31) / 32, 32, 0, stream>>>(from, to, Step{dt, n});
      cudaStreamWaitEvent(stream, join, 0);
      add<<<(n + 63) / 64, 64, 0, stream>>>(u, f, n);
      cudaFreeAsync(f, stream);
      cudaStreamEndCapture(stream, &graph);
      cudaGraphInstantiate(&instance, graph, NULL, NULL, 0);
      cudaGraphDestroy(graph);
      made = true;
    }
    cudaGraphLaunch(instance, stream);
    cudaStreamSynchronize(stream);
  }
  if (made) cudaGraphExecDestroy(instance);
  cudaMemcpy(x, u, n * sizeof(double), cudaMemcpyDeviceToHost);
  cudaFree(u);
  cudaFree(v);
}

struct Doubled {
  double *u;
  int n;
};
void twice(void *data) {
  Doubled *given = (Doubled *)data;
  for (int i = 0; i < given->n; i++) given->u[i] *= 2;
}

void by_hand(double *x, const double *force, int n, int steps, double dt) {
  double *u, *v;
  cudaMalloc(&u, n * sizeof(double));
  cudaMalloc(&v, n * sizeof(double));
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaGraphNode_t in, step, added, host, back, out;
  cudaGraphCreate(&graph, 0);
  cudaMemcpy3DParms planes = {};
  planes.srcPtr = make_cudaPitchedPtr(x, n / 2 * sizeof(double), n / 2, 1);
  planes.dstPtr = make_cudaPitchedPtr(u, n / 2 * sizeof(double), n / 2, 1);
  planes.extent = make_cudaExtent(n / 2 * sizeof(double), 1, 2);
  planes.kind = cudaMemcpyHostToDevice;
  cudaGraphAddMemcpyNode(&in, graph, nullptr, 0, &planes);
  Step by{dt, n};
  void *first[] = {&u, &v, &by}, *second[] = {&v, &force, &n};
  cudaKernelNodeParams params = {(void *)flow, dim3((n + 31) / 32), dim3(32), 0, first, nullptr};
  cudaGraphAddKernelNode(&step, graph, &in, 1, &params);
  params.func = (void *)add;
  params.kernelParams = second;
  cudaGraphAddKernelNode(&added, graph, &step, 1, &params);
  Doubled doubled{v, n};
  cudaHostNodeParams called = {twice, &doubled};
  cudaGraphAddHostNode(&host, graph, &added, 1, &called);
  cudaGraphAddMemcpyNode1D(&out, graph, &host, 1, x, v, n * sizeof(double), cudaMemcpyDeviceToHost);
  cudaMemsetParams zeros = {v, 0, 0, sizeof(double), 1, 1};
  cudaGraphAddMemsetNode(&back, graph, &out, 1, &zeros);
  cudaGraphInstantiate(&instance, graph, 0);
  cudaStream_t stream = 0;
  for (int s = 0; s < steps; s++) {
    by.dt = 0;  // was captured by value
    cudaGraphLaunch(instance, stream);
  }
  cudaGraphExecDestroy(instance);
  cudaGraphDestroy(graph);
  cudaFree(u);
  cudaFree(v);
}

void updated(double *x, const double *force, int n, int steps, double dt) {
  cudaGraphExec_t instance = nullptr;
  cudaStream_t stream = 0;
  double *u;
  Doubled doubled{x, n};
  cudaMallocManaged(&u, n * sizeof(double));
  for (int s = 0; s < steps; s++) {
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    flow<<<(n + 31) / 32, 32, 0, stream>>>(x, u, Step{dt * (s + 1), n});
    cudaMemcpyAsync(x, u, n * sizeof(double), cudaMemcpyDefault, stream);
    cudaLaunchHostFunc(stream, twice, &doubled);
    cudaStreamEndCapture(stream, &graph);
    if (!instance) cudaGraphInstantiate(&instance, graph, 0);
    else {
      cudaGraphExecUpdateResultInfo info;
      cudaGraphExecUpdate(instance, graph, &info);
    }
    cudaGraphDestroy(graph);
    cudaGraphLaunch(instance, stream);
  }
  cudaGraphExecDestroy(instance);
  cudaFree(u);
}

void read_in_a_capture(double *x, const double *force, int n, int, double) {
  cudaGraph_t graph;
  cudaStreamBeginCapture(0, cudaStreamCaptureModeRelaxed);
  add<<<1, 32>>>(x, force, n);
  cudaMemcpy(x, force, n * sizeof(double), cudaMemcpyHostToDevice);
  cudaStreamEndCapture(0, &graph);
  cudaGraphDestroy(graph);
}
void product_in_a_capture(double *x, const double *force, int n, int, double dt) {
  cublasHandle_t handle;
  cudaGraph_t graph;
  cublasCreate(&handle);
  cudaStreamBeginCapture(0, cudaStreamCaptureModeRelaxed);
  cublasDaxpy(handle, n, &dt, force, 1, x, 1);
  cudaStreamEndCapture(0, &graph);
  cudaGraphDestroy(graph);
}
