// Bodies that attract each other: two kernels a step, structures of vectors, a function for host and device.
#define TILE 32

struct System {
  double4 *place, *speed;
};

__host__ __device__ inline double inverse_cube(double d2) {
  double r = rsqrt(d2 + 0.1);
  return r * r * r;
}

__global__ void kick(System all, double dt) {
  __shared__ double3 tile[TILE];
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  double4 at = all.place[i];
  double3 force = make_double3(0, 0, 0);
  for (int t = 0; t < gridDim.x; t++) {
    double4 other = all.place[t * blockDim.x + threadIdx.x];
    tile[threadIdx.x] = make_double3(other.x, other.y, other.z);
    __syncthreads();
    for (int j = 0; j < TILE; j++) {
      double x = tile[j].x - at.x, y = tile[j].y - at.y, z = tile[j].z - at.z;
      double w = inverse_cube(x * x + y * y + z * z);
      force.x += w * x, force.y += w * y, force.z += w * z;
    }
    __syncthreads();
  }
  all.speed[i].x += dt * force.x;
  all.speed[i].y += dt * force.y;
  all.speed[i].z += dt * force.z;
}

__global__ void drift(System all, double dt) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  all.place[i].x += dt * all.speed[i].x;
  all.place[i].y += dt * all.speed[i].y;
  all.place[i].z += dt * all.speed[i].z;
}

void simulate(double *state, int n, int steps, double dt) {
  double *memory;
  size_t bytes = 2 * n * sizeof(double4);
  cudaMalloc(&memory, bytes);
  System all = {(double4 *)memory, (double4 *)memory + n};
  cudaMemcpy(memory, state, bytes, cudaMemcpyHostToDevice);
  for (int step = 0; step < steps; step++) {
    kick<<<n / TILE, TILE>>>(all, dt);
    drift<<<n / TILE, TILE>>>(all, dt);
  }
  cudaMemcpy(state, memory, bytes, cudaMemcpyDeviceToHost);
  cudaFree(memory);
}
