/* Points turned by a quaternion that is normalised first; structures returned by value. */
#include <math.h>

typedef struct {
    double w, x, y, z;
} Quaternion;

static Quaternion times(Quaternion a, Quaternion b) {
    Quaternion c = {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                    a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
    return c;
}

void quaternion(int n, const double *q, const double *p, double *out) {
    double s = 1 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    Quaternion u = {s * q[0], s * q[1], s * q[2], s * q[3]}, back = {u.w, -u.x, -u.y, -u.z};
    for (int i = 0; i < n; i++) {
        Quaternion v = {0, p[3 * i], p[3 * i + 1], p[3 * i + 2]};
        Quaternion r = times(times(u, v), back);
        out[3 * i] = r.x;
        out[3 * i + 1] = r.y;
        out[3 * i + 2] = r.z;
    }
}
