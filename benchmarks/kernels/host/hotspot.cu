#define TILE 16
__global__ void heat_step(int h, int w, const double *t, const double *power, double *r) {
    __shared__ double tile[TILE + 2][TILE + 2];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    int cx = min(x, w - 1), cy = min(y, h - 1);
    tile[ty][tx] = t[cy * w + cx];
    if (threadIdx.x == 0) tile[ty][0] = t[cy * w + max(cx - 1, 0)];
    if (threadIdx.x == TILE - 1) tile[ty][TILE + 1] = t[cy * w + min(cx + 1, w - 1)];
    if (threadIdx.y == 0) tile[0][tx] = t[max(cy - 1, 0) * w + cx];
    if (threadIdx.y == TILE - 1) tile[TILE + 1][tx] = t[min(cy + 1, h - 1) * w + cx];
    __syncthreads();
    if (x >= w || y >= h) return;
    double c = tile[ty][tx];
    r[y * w + x] = c + 0.1 * (power[y * w + x] + (tile[ty][tx - 1] + tile[ty][tx + 1] - 2 * c) * 0.5 +
                              (tile[ty - 1][tx] + tile[ty + 1][tx] - 2 * c) * 0.5 + (0.3 - c) * 0.02);
}
extern "C" void hotspot(int h, int w, int steps, const double *t, const double *power, double *r) {
    double *a, *b, *p;
    size_t bytes = sizeof(double) * h * w;
    cudaMalloc(&a, bytes);
    cudaMalloc(&b, bytes);
    cudaMalloc(&p, bytes);
    cudaMemcpy(a, t, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(p, power, bytes, cudaMemcpyHostToDevice);
    dim3 grid((w + TILE - 1) / TILE, (h + TILE - 1) / TILE), block(TILE, TILE);
    for (int i = 0; i < steps; i++) {
        heat_step<<<grid, block>>>(h, w, a, p, b);
        double *s = a;
        a = b;
        b = s;
    }
    cudaMemcpy(r, a, bytes, cudaMemcpyDeviceToHost);
    cudaFree(a);
    cudaFree(b);
    cudaFree(p);
}
