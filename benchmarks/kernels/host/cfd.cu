#define GAMMA 1.4
struct State {
    double rho, mx, my, e;
};
__device__ inline void flux(State s, double &p, double &c, double fx[4], double fy[4]) {
    double u = s.mx / s.rho, v = s.my / s.rho;
    p = (GAMMA - 1) * (s.e - 0.5 * s.rho * (u * u + v * v));
    c = sqrt(GAMMA * p / s.rho);
    fx[0] = s.mx;
    fx[1] = u * s.mx + p;
    fx[2] = v * s.mx;
    fx[3] = u * (s.e + p);
    fy[0] = s.my;
    fy[1] = u * s.my;
    fy[2] = v * s.my + p;
    fy[3] = v * (s.e + p);
}
__global__ void fluxes(int n, const int *near, const double *normals, const double *v, double *r) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= n) return;
    State me = {v[i], v[n + i], v[2 * n + i], v[3 * n + i]};
    double p, c, fx[4], fy[4], sum[4] = {0, 0, 0, 0};
    flux(me, p, c, fx, fy);
    for (int k = 0; k < 4; k++) {
        int o = near[4 * i + k];
        double nx = normals[(4 * i + k) * 2], ny = normals[(4 * i + k) * 2 + 1], len = sqrt(nx * nx + ny * ny);
        if (o >= 0) {
            State s = {v[o], v[n + o], v[2 * n + o], v[3 * n + o]};
            double po, co, gx[4], gy[4];
            flux(s, po, co, gx, gy);
            double factor = -len * 0.1 * (fabs(me.mx / me.rho) + c + co);
            double d[4] = {me.rho - s.rho, me.mx - s.mx, me.my - s.my, me.e - s.e};
            for (int q = 0; q < 4; q++)
                sum[q] += factor * d[q] + 0.5 * nx * (fx[q] + gx[q]) + 0.5 * ny * (fy[q] + gy[q]);
        } else {
            sum[1] += nx * p;
            sum[2] += ny * p;
        }
    }
    for (int q = 0; q < 4; q++) r[q * n + i] = sum[q];
}
extern "C" void cfd(int n, const int *near, const double *normals, const double *v, double *r) {
    int *dn;
    double *dm, *dv, *dr;
    cudaMalloc(&dn, sizeof(int) * 4 * n);
    cudaMalloc(&dm, sizeof(double) * 8 * n);
    cudaMalloc(&dv, sizeof(double) * 4 * n);
    cudaMalloc(&dr, sizeof(double) * 4 * n);
    cudaMemcpy(dn, near, sizeof(int) * 4 * n, cudaMemcpyHostToDevice);
    cudaMemcpy(dm, normals, sizeof(double) * 8 * n, cudaMemcpyHostToDevice);
    cudaMemcpy(dv, v, sizeof(double) * 4 * n, cudaMemcpyHostToDevice);
    fluxes<<<(n + 191) / 192, 192>>>(n, dn, dm, dv, dr);
    cudaMemcpy(r, dr, sizeof(double) * 4 * n, cudaMemcpyDeviceToHost);
    cudaFree(dn);
    cudaFree(dm);
    cudaFree(dv);
    cudaFree(dr);
}
