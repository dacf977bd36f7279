__global__ void fan1(double *m, const double *a, int n, int t) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n - 1 - t) return;
    m[n * (i + t + 1) + t] = a[n * (i + t + 1) + t] / a[n * t + t];
}
__global__ void fan2(const double *m, double *a, double *b, int n, int t) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n - 1 - t || y >= n - t) return;
    a[n * (x + 1 + t) + y + t] -= m[n * (x + 1 + t) + t] * a[n * t + y + t];
    if (y == 0) b[x + 1 + t] -= m[n * (x + 1 + t) + t] * b[t];
}
extern "C" void gaussian(int n, const double *a, const double *b, double *x) {
    double *dm, *da, *db, *ha = (double *)malloc(sizeof(double) * n * n), *hb = (double *)malloc(sizeof(double) * n);
    cudaMalloc(&dm, sizeof(double) * n * n);
    cudaMalloc(&da, sizeof(double) * n * n);
    cudaMalloc(&db, sizeof(double) * n);
    cudaMemset(dm, 0, sizeof(double) * n * n);
    cudaMemcpy(da, a, sizeof(double) * n * n, cudaMemcpyHostToDevice);
    cudaMemcpy(db, b, sizeof(double) * n, cudaMemcpyHostToDevice);
    for (int t = 0; t < n - 1; t++) {
        fan1<<<(n + 255) / 256, 256>>>(dm, da, n, t);
        fan2<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(dm, da, db, n, t);
        cudaDeviceSynchronize();
    }
    cudaMemcpy(ha, da, sizeof(double) * n * n, cudaMemcpyDeviceToHost);
    cudaMemcpy(hb, db, sizeof(double) * n, cudaMemcpyDeviceToHost);
    for (int i = n - 1; i >= 0; i--) {
        x[i] = hb[i];
        for (int j = i + 1; j < n; j++) x[i] -= ha[n * i + j] * x[j];
        x[i] /= ha[n * i + i];
    }
    free(ha);
    free(hb);
    cudaFree(dm);
    cudaFree(da);
    cudaFree(db);
}
