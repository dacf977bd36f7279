// Bundle adjustment: what a pinhole camera with radial distortion sees of a point, and how far that is from what was
// observed. A camera is a rotation vector, its centre, the focal length, the principal point, and two distortions.
#include <math.h>

static void cross(const double *a, const double *b, double *c) {
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// Rodrigues: v cos(t) + (k x v) sin(t) + k (k.v) (1 - cos(t))
static void rotate(const double *r, const double *v, double *out) {
    double square = dot(r, r);
    double rv[3];
    if (square == 0) {
        cross(r, v, rv);
        for (int i = 0; i < 3; i++) out[i] = v[i] + rv[i];
        return;
    }
    double angle = sqrt(square), c = cos(angle), s = sin(angle), axis[3];
    for (int i = 0; i < 3; i++) axis[i] = r[i] / angle;
    cross(axis, v, rv);
    double along = dot(axis, v) * (1 - c);
    for (int i = 0; i < 3; i++) out[i] = v[i] * c + rv[i] * s + axis[i] * along;
}

void bundle(int n, int m, int p, const double *cameras, const double *points, const double *weights,
            const int *pairs, const double *features, double *errors, double *weight_errors) {
    (void)n, (void)m;
    for (int i = 0; i < p; i++) {
        const double *camera = cameras + 11 * pairs[2 * i], *point = points + 3 * pairs[2 * i + 1];
        double from[3], seen[3];
        for (int j = 0; j < 3; j++) from[j] = point[j] - camera[3 + j];
        rotate(camera, from, seen);
        double x = seen[0] / seen[2], y = seen[1] / seen[2], square = x * x + y * y;
        double stretch = 1 + camera[9] * square + camera[10] * square * square;
        double w = weights[i];
        errors[2 * i] = w * (x * stretch * camera[6] + camera[7] - features[2 * i]);
        errors[2 * i + 1] = w * (y * stretch * camera[6] + camera[8] - features[2 * i + 1]);
        weight_errors[i] = 1 - w * w;
    }
}
