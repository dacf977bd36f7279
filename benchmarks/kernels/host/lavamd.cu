#define T 64
__global__ void forces(int per, int ncount, const int *near, const double4 *pos, const double *q, double alpha,
                       double4 *f) {
    __shared__ double4 other[T];
    __shared__ double charge[T];
    int cell = blockIdx.x, t = threadIdx.x;
    double a2 = 2 * alpha * alpha;
    double4 me = t < per ? pos[cell * per + t] : make_double4(0, 0, 0, 0), sum = make_double4(0, 0, 0, 0);
    for (int k = 0; k < ncount; k++) {
        int o = near[cell * ncount + k];
        if (t < per) {
            other[t] = pos[o * per + t];
            charge[t] = q[o * per + t];
        }
        __syncthreads();
        if (t < per)
            for (int j = 0; j < per; j++) {
                double r2 = me.w + other[j].w - (me.x * other[j].x + me.y * other[j].y + me.z * other[j].z);
                double v = exp(-a2 * r2), s = 2 * v;
                sum.w += charge[j] * v;
                sum.x += charge[j] * s * (me.x - other[j].x);
                sum.y += charge[j] * s * (me.y - other[j].y);
                sum.z += charge[j] * s * (me.z - other[j].z);
            }
        __syncthreads();
    }
    if (t < per) f[cell * per + t] = sum;
}
extern "C" void lavamd(int cells, int per, int ncount, const int *near, const double *pos, const double *q,
                       double alpha, double *f) {
    int *dn;
    double4 *dp, *df;
    double *dq;
    cudaMalloc(&dn, sizeof(int) * cells * ncount);
    cudaMalloc(&dp, sizeof(double4) * cells * per);
    cudaMalloc(&df, sizeof(double4) * cells * per);
    cudaMalloc(&dq, sizeof(double) * cells * per);
    cudaMemcpy(dn, near, sizeof(int) * cells * ncount, cudaMemcpyHostToDevice);
    cudaMemcpy(dp, pos, sizeof(double4) * cells * per, cudaMemcpyHostToDevice);
    cudaMemcpy(dq, q, sizeof(double) * cells * per, cudaMemcpyHostToDevice);
    forces<<<cells, T>>>(per, ncount, dn, dp, dq, alpha, df);
    cudaMemcpy(f, df, sizeof(double4) * cells * per, cudaMemcpyDeviceToHost);
    cudaFree(dn);
    cudaFree(dp);
    cudaFree(df);
    cudaFree(dq);
}
