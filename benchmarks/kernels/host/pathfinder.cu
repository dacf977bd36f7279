#define W 256
#define DEPTH 20
__global__ void advance(int rows, int cols, int start, int depth, const double *wall, const double *src, double *dst) {
    __shared__ double prev[W], next[W];
    int inner = W - 2 * depth, x = inner * blockIdx.x - depth + threadIdx.x, t = threadIdx.x;
    bool in = x >= 0 && x < cols;
    int lo = max(0, -(inner * (int)blockIdx.x - depth)), hi = min(W - 1, cols - 1 - (inner * (int)blockIdx.x - depth));
    int l = max(t - 1, lo), r = min(t + 1, hi);
    if (in) prev[t] = src[x];
    __syncthreads();
    bool done = false;
    for (int i = 0; i < depth; i++) {
        done = false;
        if (t >= i + 1 && t <= W - i - 2 && in) {
            done = true;
            next[t] = fmin(fmin(prev[l], prev[t]), prev[r]) + wall[(start + i) * cols + x];
        }
        __syncthreads();
        if (i == depth - 1) break;
        if (done) prev[t] = next[t];
        __syncthreads();
    }
    if (done) dst[x] = next[t];
}
extern "C" void pathfinder(int rows, int cols, const double *wall, double *r) {
    double *dw, *d[2];
    cudaMalloc(&dw, sizeof(double) * rows * cols);
    for (int i = 0; i < 2; i++) cudaMalloc(&d[i], sizeof(double) * cols);
    cudaMemcpy(dw, wall, sizeof(double) * rows * cols, cudaMemcpyHostToDevice);
    cudaMemcpy(d[0], wall, sizeof(double) * cols, cudaMemcpyHostToDevice);
    int src = 0;
    for (int i = 1; i < rows; i += DEPTH) {
        int depth = min(DEPTH, rows - i), inner = W - 2 * depth;
        advance<<<(cols + inner - 1) / inner, W>>>(rows, cols, i, depth, dw, d[src], d[1 - src]);
        src = 1 - src;
    }
    cudaMemcpy(r, d[src], sizeof(double) * cols, cudaMemcpyDeviceToHost);
    cudaFree(dw);
    cudaFree(d[0]);
    cudaFree(d[1]);
}
