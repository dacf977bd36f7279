__global__ void coefficients(int h, int w, double q0, const double *j, double *dn, double *ds, double *dw, double *de,
                             double *c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int at = y * w + x;
    double v = j[at];
    double n = j[max(y - 1, 0) * w + x] - v, s = j[min(y + 1, h - 1) * w + x] - v;
    double l = j[y * w + max(x - 1, 0)] - v, e = j[y * w + min(x + 1, w - 1)] - v;
    double g2 = (n * n + s * s + l * l + e * e) / (v * v), lap = (n + s + l + e) / v;
    double num = 0.5 * g2 - (1.0 / 16.0) * lap * lap, den = 1 + 0.25 * lap, q = num / (den * den);
    double k = 1.0 / (1.0 + (q - q0) / (q0 * (1 + q0)));
    c[at] = k < 0 ? 0 : k > 1 ? 1 : k;
    dn[at] = n;
    ds[at] = s;
    dw[at] = l;
    de[at] = e;
}
__global__ void diffuse(int h, int w, double lam, const double *dn, const double *ds, const double *dw,
                        const double *de, const double *c, double *j) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int at = y * w + x;
    double here = c[at], south = c[min(y + 1, h - 1) * w + x], east = c[y * w + min(x + 1, w - 1)];
    j[at] += 0.25 * lam * (here * dn[at] + south * ds[at] + here * dw[at] + east * de[at]);
}
extern "C" void srad(int h, int w, int steps, double lam, const double *img, double *r) {
    size_t n = (size_t)h * w, bytes = n * sizeof(double);
    double *j, *c, *d[4];
    cudaMalloc((void **)&j, bytes);
    cudaMalloc((void **)&c, bytes);
    for (int i = 0; i < 4; i++) cudaMalloc((void **)&d[i], bytes);
    double *host = (double *)malloc(bytes);
    for (size_t i = 0; i < n; i++) host[i] = exp(img[i]);
    cudaMemcpy(j, host, bytes, cudaMemcpyHostToDevice);
    dim3 block(16, 16), grid((w + 15) / 16, (h + 15) / 16);
    for (int it = 0; it < steps; it++) {
        cudaMemcpy(host, j, bytes, cudaMemcpyDeviceToHost);
        double sum = 0, sum2 = 0;
        for (size_t i = 0; i < n; i++) {
            sum += host[i];
            sum2 += host[i] * host[i];
        }
        double mean = sum / n, var = sum2 / n - mean * mean, q0 = var / (mean * mean);
        coefficients<<<grid, block>>>(h, w, q0, j, d[0], d[1], d[2], d[3], c);
        diffuse<<<grid, block>>>(h, w, lam, d[0], d[1], d[2], d[3], c, j);
    }
    cudaDeviceSynchronize();
    cudaMemcpy(host, j, bytes, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < n; i++) r[i] = log(host[i]);
    free(host);
    for (int i = 0; i < 4; i++) cudaFree(d[i]);
    cudaFree(j);
    cudaFree(c);
}
