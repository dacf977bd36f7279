#include <cuda_runtime.h>

// Weighted sums of columns: a tree over the rows of a tile, whose weights one thread of each row brings.
#define ROWS 8
#define COLUMNS 16

__global__ void columns(int m, const double *weight, const double *x, double *part) {
    __shared__ double own[ROWS], tile[ROWS][COLUMNS];
    int c = threadIdx.x, r = threadIdx.y, row = blockIdx.y * ROWS + r, column = blockIdx.x * COLUMNS + c;
    if (c == 0) own[r] = weight[row];
    __syncthreads();
    tile[r][c] = x[row * m + column];
    __syncthreads();
    tile[r][c] *= own[r];
    __syncthreads();
    for (int step = 1; step < ROWS; step *= 2) {
        if (r % (2 * step) == 0) tile[r][c] += tile[r + step][c];
        __syncthreads();
    }
    if (r == 0) part[blockIdx.y * m + column] = tile[0][c];
}

extern "C" void weighted(int n, int m, const double *weight, const double *x, double *sums) {
    int parts = n / ROWS;
    double *w, *d, *part, *host = new double[parts * m];
    cudaMalloc(&w, n * sizeof(double));
    cudaMalloc(&d, n * m * sizeof(double));
    cudaMalloc(&part, parts * m * sizeof(double));
    cudaMemcpy(w, weight, n * sizeof(double), cudaMemcpyHostToDevice);
    cudaMemcpy(d, x, n * m * sizeof(double), cudaMemcpyHostToDevice);
    columns<<<dim3(m / COLUMNS, parts), dim3(COLUMNS, ROWS)>>>(m, w, d, part);
    cudaMemcpy(host, part, parts * m * sizeof(double), cudaMemcpyDeviceToHost);
    for (int j = 0; j < m; j++) {
        double sum = 0;
        for (int p = 0; p < parts; p++) sum += host[p * m + j];
        sums[j] = sin(sum);
    }
    delete[] host;
    cudaFree(w);
    cudaFree(d);
    cudaFree(part);
}
