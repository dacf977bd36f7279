"""CUDA kernels, the same computations as plain loops in C, and the sizes at which the two are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """One kernel. `c` defines a function of the same name and parameters that does what the whole grid does; `inputs`
    are the caller's arguments, by name."""

    name: str
    size: str
    signature: str
    grid: object
    block: object
    cuda: str
    c: str
    inputs: Callable[[np.random.Generator], Arrays]


_WARP_SUM = """
template <class T> __device__ T warp_sum(T v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  return v;
}
"""


def _matmul(kind: str) -> Problem:
    return Problem(
        f"matmul_{kind}", "384 x 384 x 384", f"n: i32, a: {kind}[n,n], b: {kind}[n,n], out c: {kind}[n,n]",
        ("(n+15)//16", "(n+15)//16"), (16, 16),
        """
typedef TYPE real;
extern "C" __global__ void NAME(int n, const real *a, const real *b, real *c) {
  __shared__ real ta[16][16], tb[16][17];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  real sum = 0;
  for (int p = 0; p < (n + 15) / 16; p++) {
    ta[y][x] = row < n && p * 16 + x < n ? a[row * n + p * 16 + x] : real(0);
    tb[y][x] = col < n && p * 16 + y < n ? b[(p * 16 + y) * n + col] : real(0);
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += ta[y][k] * tb[k][x];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = sum;
}
""".replace("TYPE", "float" if kind == "f32" else "double").replace("NAME", f"matmul_{kind}"),
        """
typedef TYPE real;
void NAME(int n, const real *restrict a, const real *restrict b, real *restrict c) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) c[i * n + j] = 0;
    for (int k = 0; k < n; k++)
      for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
  }
}
""".replace("TYPE", "float" if kind == "f32" else "double").replace("NAME", f"matmul_{kind}"),
        lambda r: {"a": r.normal(size=(384, 384)), "b": r.normal(size=(384, 384))},
    )  # fmt: skip


PROBLEMS = (
    Problem(
        "option", "1M, f32", "n: i32, strike: f32, s: f32[n], t: f32[n], out y: f32[n]", "(n+255)//256", 256,
        """
extern "C" __global__ void option(int n, float strike, const float *s, const float *t, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = 0.3f * sqrtf(t[i]), d = (logf(s[i] / strike) + 0.05f * t[i]) / v + 0.5f * v;
  y[i] = s[i] / (1.0f + expf(-1.7f * d)) - strike * expf(-0.05f * t[i]) / (1.0f + expf(-1.7f * (d - v)));
}
""",
        """
void option(int n, float strike, const float *restrict s, const float *restrict t, float *restrict y) {
  for (int i = 0; i < n; i++) {
    float v = 0.3f * sqrtf(t[i]), d = (logf(s[i] / strike) + 0.05f * t[i]) / v + 0.5f * v;
    y[i] = s[i] / (1.0f + expf(-1.7f * d)) - strike * expf(-0.05f * t[i]) / (1.0f + expf(-1.7f * (d - v)));
  }
}
""",
        lambda r: {"strike": np.float32(1.0), "s": r.uniform(0.5, 2, 1 << 20), "t": r.uniform(0.5, 2, 1 << 20)},
    ),
    Problem(
        "axpy", "1M, f64, grid-stride", "n: i32, a: f64, x: f64[n], inout y: f64[n]", 512, 256,
        """
extern "C" __global__ void axpy(int n, double a, const double *x, double *y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += a * x[i];
}
""",
        """
void axpy(int n, double a, const double *restrict x, double *restrict y) {
  for (int i = 0; i < n; i++) y[i] += a * x[i];
}
""",
        lambda r: {"a": np.float64(0.3), "x": r.normal(size=1 << 20), "y": r.normal(size=1 << 20)},
    ),
    Problem(
        "laplace", "1000 x 1000, f64", "h: i32, w: i32, c: f64, u: f64[h,w], out v: f64[h,w]",
        ("(w+31)//32", "(h+7)//8"), (32, 8),
        """
extern "C" __global__ void laplace(int h, int w, double c, const double *u, double *v) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int at = y * w + x;
  if (x == 0 || y == 0 || x == w - 1 || y == h - 1) { v[at] = u[at]; return; }
  v[at] = u[at] + c * (u[at - 1] + u[at + 1] + u[at - w] + u[at + w] - 4 * u[at]);
}
""",
        """
void laplace(int h, int w, double c, const double *restrict u, double *restrict v) {
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      int at = y * w + x;
      if (x == 0 || y == 0 || x == w - 1 || y == h - 1) { v[at] = u[at]; continue; }
      v[at] = u[at] + c * (u[at - 1] + u[at + 1] + u[at - w] + u[at + w] - 4 * u[at]);
    }
}
""",
        lambda r: {"c": np.float64(0.2), "u": r.normal(size=(1000, 1000))},
    ),
    Problem(
        "heat", "96 x 96 x 96, f32, marching in z", "n: i32, k: f32, u: f32[n,n,n], out v: f32[n,n,n]",
        ("(n+31)//32", "(n+3)//4"), (32, 4),
        """
extern "C" __global__ void heat(int n, float k, const float *u, float *v) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, plane = n * n;
  if (x <= 0 || y <= 0 || x >= n - 1 || y >= n - 1) return;
  int at = y * n + x + plane;
  float below = u[at - plane], here = u[at];
  for (int z = 1; z < n - 1; z++, at += plane) {
    float above = u[at + plane];
    v[at] = here + k * (below + above + u[at - 1] + u[at + 1] + u[at - n] + u[at + n] - 6.0f * here);
    below = here;
    here = above;
  }
}
""",
        """
void heat(int n, float k, const float *restrict u, float *restrict v) {
  int plane = n * n;
  for (int z = 1; z < n - 1; z++)
    for (int y = 1; y < n - 1; y++)
      for (int x = 1; x < n - 1; x++) {
        int at = z * plane + y * n + x;
        v[at] = u[at] + k * (u[at - plane] + u[at + plane] + u[at - 1] + u[at + 1] + u[at - n] + u[at + n]
                             - 6.0f * u[at]);
      }
}
""",
        lambda r: {"k": np.float32(0.1), "u": r.normal(size=(96, 96, 96))},
    ),
    _matmul("f32"),
    _matmul("f64"),
    Problem(
        "block_sums", "4096 blocks of 1024, f32, shuffles", "b: i32, x: f32[b,1024], out y: f32[b]", "b", 256,
        _WARP_SUM + """
extern "C" __global__ void block_sums(int b, const float *x, float *y) {
  __shared__ float part[8];
  float sum = 0;
  for (int i = threadIdx.x; i < 1024; i += 256) { float v = x[blockIdx.x * 1024 + i]; sum += v * v; }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = warp_sum(threadIdx.x < 8 ? part[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) y[blockIdx.x] = sqrtf(sum);
  }
}
""",
        """
void block_sums(int b, const float *restrict x, float *restrict y) {
  for (int k = 0; k < b; k++) {
    float sum = 0;
    for (int i = 0; i < 1024; i++) sum += x[k * 1024 + i] * x[k * 1024 + i];
    y[k] = sqrtf(sum);
  }
}
""",
        lambda r: {"x": r.normal(size=(4096, 1024))},
    ),
    Problem(
        "tree_norm", "2048 rows of 512, f64, shared tree", "b: i32, x: f64[b,512], out y: f64[b,512]", "b", 128,
        """
extern "C" __global__ void tree_norm(int b, const double *x, double *y) {
  __shared__ double s[128];
  int t = threadIdx.x;
  double v[4], sum = 0;
  for (int i = 0; i < 4; i++) { v[i] = x[blockIdx.x * 512 + i * 128 + t]; sum += v[i] * v[i]; }
  s[t] = sum;
  __syncthreads();
  for (int h = 64; h > 0; h /= 2) {
    if (t < h) s[t] += s[t + h];
    __syncthreads();
  }
  double r = rsqrt(s[0] / 512 + 1e-6);
  for (int i = 0; i < 4; i++) y[blockIdx.x * 512 + i * 128 + t] = v[i] * r;
}
""",
        """
void tree_norm(int b, const double *restrict x, double *restrict y) {
  for (int k = 0; k < b; k++) {
    double sum = 0;
    for (int i = 0; i < 512; i++) sum += x[k * 512 + i] * x[k * 512 + i];
    double r = 1 / sqrt(sum / 512 + 1e-6);
    for (int i = 0; i < 512; i++) y[k * 512 + i] = x[k * 512 + i] * r;
  }
}
""",
        lambda r: {"x": r.normal(size=(2048, 512))},
    ),
    Problem(
        "row_softmax", "2048 rows of 512, f32, shuffles", "b: i32, x: f32[b,512], out y: f32[b,512]", "(b+3)//4",
        (32, 4),
        """
extern "C" __global__ void row_softmax(int b, const float *x, float *y) {
  int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= b) return;
  float top = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < 512; i += 32) top = fmaxf(top, x[row * 512 + i]);
  for (int o = 16; o > 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
  for (int i = threadIdx.x; i < 512; i += 32) sum += expf(x[row * 512 + i] - top);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  for (int i = threadIdx.x; i < 512; i += 32) y[row * 512 + i] = expf(x[row * 512 + i] - top) / sum;
}
""",
        """
void row_softmax(int b, const float *restrict x, float *restrict y) {
  for (int k = 0; k < b; k++) {
    float top = -1e30f, sum = 0;
    for (int i = 0; i < 512; i++) top = fmaxf(top, x[k * 512 + i]);
    for (int i = 0; i < 512; i++) { y[k * 512 + i] = expf(x[k * 512 + i] - top); sum += y[k * 512 + i]; }
    for (int i = 0; i < 512; i++) y[k * 512 + i] /= sum;
  }
}
""",
        lambda r: {"x": r.normal(size=(2048, 512))},
    ),
    Problem(
        "transpose", "1024 x 1024, f32, shared", "n: i32, x: f32[n,n], out y: f32[n,n]",
        ("(n+31)//32", "(n+31)//32"), (32, 8),
        """
extern "C" __global__ void transpose(int n, const float *x, float *y) {
  __shared__ float tile[32][33];
  int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (i < n && j + k < n) tile[threadIdx.y + k][threadIdx.x] = x[(j + k) * n + i];
  __syncthreads();
  i = blockIdx.y * 32 + threadIdx.x;
  j = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (i < n && j + k < n) y[(j + k) * n + i] = tile[threadIdx.x][threadIdx.y + k];
}
""",
        """
void transpose(int n, const float *restrict x, float *restrict y) {
  for (int i = 0; i < n; i += 32)
    for (int j = 0; j < n; j += 32)
      for (int a = i; a < i + 32 && a < n; a++)
        for (int b = j; b < j + 32 && b < n; b++) y[a * n + b] = x[b * n + a];
}
""",
        lambda r: {"x": r.normal(size=(1024, 1024))},
    ),
    Problem(
        "blur", "1M, f32, window of 9, halo in shared memory", "n: i32, w: f32[9], x: f32[n], out y: f32[n]",
        "(n+127)//128", 128,
        """
extern "C" __global__ void blur(int n, const float *w, const float *x, float *y) {
  __shared__ float s[136];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t + 4] = i < n ? x[i] : 0.0f;
  if (t < 4) { int l = i - 4; s[t] = l >= 0 ? x[l] : 0.0f; }
  if (t >= 124) { int r = i + 4; s[t + 8] = r < n ? x[r] : 0.0f; }
  __syncthreads();
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 9; k++) sum += w[k] * s[t + k];
  y[i] = sum;
}
""",
        """
void blur(int n, const float *restrict w, const float *restrict x, float *restrict y) {
  for (int i = 0; i < n; i++) {
    float sum = 0;
    for (int k = 0; k < 9; k++) { int j = i + k - 4; sum += w[k] * (j >= 0 && j < n ? x[j] : 0.0f); }
    y[i] = sum;
  }
}
""",
        lambda r: {"w": r.normal(size=9), "x": r.normal(size=1 << 20)},
    ),
    Problem(
        "histogram", "1M, 64 bins, counts in shared memory", "n: i32, x: f32[n], inout bins: i32[64]", 128, 256,
        """
extern "C" __global__ void histogram(int n, const float *x, int *bins) {
  __shared__ int s[64];
  if (threadIdx.x < 64) s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int k = (int)(x[i] * 64.0f);
    atomicAdd(&s[k < 0 ? 0 : k > 63 ? 63 : k], 1);
  }
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
""",
        """
void histogram(int n, const float *restrict x, int *restrict bins) {
  for (int i = 0; i < n; i++) {
    int k = (int)(x[i] * 64.0f);
    bins[k < 0 ? 0 : k > 63 ? 63 : k]++;
  }
}
""",
        lambda r: {"x": r.uniform(0, 1, 1 << 20), "bins": np.zeros(64, np.int32)},
    ),
    Problem(
        "total", "1M, f64, one atomic per block", "n: i32, x: f64[n], inout y: f64[]", "(n+1023)//1024", 256,
        _WARP_SUM + """
extern "C" __global__ void total(int n, const double *x, double *y) {
  double sum = 0;
  for (int k = 0; k < 4; k++) {
    int i = blockIdx.x * 1024 + k * 256 + threadIdx.x;
    if (i < n) sum += x[i] * x[i];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) atomicAdd(y, sum);
}
""",
        """
void total(int n, const double *restrict x, double *restrict y) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * x[i];
  *y += sum;
}
""",
        lambda r: {"x": r.normal(size=1 << 20), "y": np.float64(0)},
    ),
    Problem(
        "gravity", "1024 bodies, f32, tiles of 128", "n: i32, p: f32[n,4], out a: f32[n,3]", "(n+127)//128", 128,
        """
extern "C" __global__ void gravity(int n, const float4 *p, float *a) {
  __shared__ float4 s[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  float4 me = i < n ? p[i] : make_float4(0, 0, 0, 0);
  float x = 0, y = 0, z = 0;
  for (int b = 0; b < n; b += 128) {
    s[t] = b + t < n ? p[b + t] : make_float4(0, 0, 0, 0);
    __syncthreads();
    for (int j = 0; j < 128; j++) {
      float dx = s[j].x - me.x, dy = s[j].y - me.y, dz = s[j].z - me.z;
      float r = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f), m = s[j].w * r * r * r;
      x += m * dx; y += m * dy; z += m * dz;
    }
    __syncthreads();
  }
  if (i < n) { a[3 * i] = x; a[3 * i + 1] = y; a[3 * i + 2] = z; }
}
""",
        """
void gravity(int n, const float *restrict p, float *restrict a) {
  for (int i = 0; i < n; i++) {
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < n; j++) {
      float dx = p[4 * j] - p[4 * i], dy = p[4 * j + 1] - p[4 * i + 1], dz = p[4 * j + 2] - p[4 * i + 2];
      float r = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f), m = p[4 * j + 3] * r * r * r;
      x += m * dx; y += m * dy; z += m * dz;
    }
    a[3 * i] = x; a[3 * i + 1] = y; a[3 * i + 2] = z;
  }
}
""",
        lambda r: {"p": np.abs(r.normal(size=(1024, 4)))},
    ),
)  # fmt: skip
