#define H 16
__global__ void layer(int n, int hidden, const float *x, const float *w, float *partial) {
    __shared__ float node[H], weight[H][H];
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y, row = by * H + ty;
    if (tx == 0) node[ty] = row < n ? x[row] : 0;
    __syncthreads();
    weight[ty][tx] = row < n ? w[row * hidden + blockIdx.x * H + tx] : 0;
    __syncthreads();
    weight[ty][tx] = weight[ty][tx] * node[ty];
    __syncthreads();
    for (int i = 1; i <= 4; i++) {
        int p = 1 << i;
        if (ty % p == 0) weight[ty][tx] += weight[ty + p / 2][tx];
        __syncthreads();
    }
    if (ty == 0) partial[by * hidden + blockIdx.x * H + tx] = weight[0][tx];
}
extern "C" void backprop(int n, int hidden, const float *x, const float *w, float *h) {
    int blocks = (n + H - 1) / H;
    float *dx, *dw, *dp, *partial = (float *)malloc(sizeof(float) * blocks * hidden);
    cudaMalloc(&dx, sizeof(float) * n);
    cudaMalloc(&dw, sizeof(float) * n * hidden);
    cudaMalloc(&dp, sizeof(float) * blocks * hidden);
    cudaMemcpy(dx, x, sizeof(float) * n, cudaMemcpyHostToDevice);
    cudaMemcpy(dw, w, sizeof(float) * n * hidden, cudaMemcpyHostToDevice);
    layer<<<dim3(hidden / H, blocks), dim3(H, H)>>>(n, hidden, dx, dw, dp);
    cudaMemcpy(partial, dp, sizeof(float) * blocks * hidden, cudaMemcpyDeviceToHost);
    for (int j = 0; j < hidden; j++) {
        float sum = 0;
        for (int b = 0; b < blocks; b++) sum += partial[b * hidden + j];
        h[j] = 1.0f / (1.0f + expf(-sum));
    }
    free(partial);
    cudaFree(dx);
    cudaFree(dw);
    cudaFree(dp);
}
