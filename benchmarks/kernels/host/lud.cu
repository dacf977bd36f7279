#define B 16
__global__ void diagonal(double *m, int n, int at) {
    __shared__ double s[B][B];
    int t = threadIdx.x;
    for (int i = 0; i < B; i++) s[i][t] = m[(at + i) * n + at + t];
    __syncthreads();
    for (int i = 0; i < B - 1; i++) {
        if (t > i) {
            for (int j = 0; j < i; j++) s[t][i] -= s[t][j] * s[j][i];
            s[t][i] /= s[i][i];
        }
        __syncthreads();
        if (t > i) {
            for (int j = 0; j < i + 1; j++) s[i + 1][t] -= s[i + 1][j] * s[j][t];
        }
        __syncthreads();
    }
    for (int i = 0; i < B; i++) m[(at + i) * n + at + t] = s[i][t];
}
__global__ void perimeter(double *m, int n, int at) {
    __shared__ double dia[B][B], row[B][B], col[B][B];
    int t = threadIdx.x % B, other = at + (blockIdx.x + 1) * B;
    bool left = threadIdx.x < B;
    if (left) {
        for (int i = 0; i < B; i++) {
            dia[i][t] = m[(at + i) * n + at + t];
            row[i][t] = m[(at + i) * n + other + t];
        }
    } else {
        for (int i = 0; i < B; i++) col[i][t] = m[(other + i) * n + at + t];
    }
    __syncthreads();
    if (left) {
        for (int i = 1; i < B; i++)
            for (int j = 0; j < i; j++) row[i][t] -= dia[i][j] * row[j][t];
    } else {
        for (int i = 0; i < B; i++) {
            for (int j = 0; j < i; j++) col[t][i] -= col[t][j] * dia[j][i];
            col[t][i] /= dia[i][i];
        }
    }
    __syncthreads();
    if (left)
        for (int i = 1; i < B; i++) m[(at + i) * n + other + t] = row[i][t];
    else
        for (int i = 0; i < B; i++) m[(other + i) * n + at + t] = col[i][t];
}
__global__ void internal(double *m, int n, int at) {
    __shared__ double row[B][B], col[B][B];
    int x = threadIdx.x, y = threadIdx.y, gr = at + (blockIdx.y + 1) * B, gc = at + (blockIdx.x + 1) * B;
    row[y][x] = m[(at + y) * n + gc + x];
    col[y][x] = m[(gr + y) * n + at + x];
    __syncthreads();
    double sum = 0;
    for (int i = 0; i < B; i++) sum += col[y][i] * row[i][x];
    m[(gr + y) * n + gc + x] -= sum;
}
extern "C" void lud(int n, double *m) {
    double *d;
    cudaMalloc((void **)&d, (size_t)n * n * sizeof(double));
    cudaMemcpy(d, m, (size_t)n * n * sizeof(double), cudaMemcpyHostToDevice);
    int i = 0;
    for (; i < n - B; i += B) {
        diagonal<<<1, B>>>(d, n, i);
        int left = (n - i) / B - 1;
        perimeter<<<left, 2 * B>>>(d, n, i);
        internal<<<dim3(left, left), dim3(B, B)>>>(d, n, i);
    }
    diagonal<<<1, B>>>(d, n, i);
    cudaMemcpy(m, d, (size_t)n * n * sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(d);
}
