/* Bundle adjustment: each camera's rotation is a matrix, computed once, and so is the way back from its cotangent;
 * observations in blocks of 16, gathered, computed in vectors and scattered. */
#include <math.h>

enum {
    BLOCK = 16,
    CAMERA = 17,
    ROTATION = 9
}; /* of a camera: rotation, centre, focal length, principal point, two distortions */

/* Rodrigues' formula: cos I + sin [k] + (1 - cos) k k', where [k] v is the cross product */
static void rotation(const double *r, double *matrix) {
    double angle = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]), over = angle > 0 ? 1 / angle : 1;
    double c = cos(angle), s = angle > 0 ? sin(angle) : 1, k[3] = {r[0] * over, r[1] * over, r[2] * over};
    for (int i = 0; i < 9; i++) matrix[i] = (1 - c) * k[i / 3] * k[i % 3];
    for (int i = 0; i < 3; i++) {
        matrix[4 * i] += c;
        matrix[3 * i + (i + 1) % 3] -= s * k[(i + 2) % 3];
        matrix[3 * ((i + 1) % 3) + i] += s * k[(i + 2) % 3];
    }
}

static void rotation_adjoint(const double *r, const double *bar, double *r_bar) {
    double skew[3] = {bar[7] - bar[5], bar[2] - bar[6], bar[3] - bar[1]};
    double angle = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    if (angle == 0) {
        for (int i = 0; i < 3; i++) r_bar[i] = skew[i];
        return;
    }
    double c = cos(angle), s = sin(angle), k[3], k_bar[3], along = 0, twice = 0, turn = 0,
           trace = bar[0] + bar[4] + bar[8];
    for (int i = 0; i < 3; i++) k[i] = r[i] / angle;
    for (int i = 0; i < 3; i++) {
        double both = 0;
        for (int j = 0; j < 3; j++) both += (bar[3 * i + j] + bar[3 * j + i]) * k[j];
        k_bar[i] = s * skew[i] + (1 - c) * both;
        twice += both * k[i];
        turn += skew[i] * k[i];
        along += k_bar[i] * k[i];
    }
    double angle_bar = c * turn - s * (trace - 0.5 * twice);
    for (int i = 0; i < 3; i++) r_bar[i] = k_bar[i] / angle + k[i] * (angle_bar - along / angle);
}

static void block(int count, const double *cameras, const double *points, const double *restrict weights,
                  const int *restrict pairs, const double *restrict features, const double *restrict errors_bar,
                  const double *restrict weight_errors_bar, double *cameras_bar, double *points_bar,
                  double *restrict weights_bar) {
    double of[CAMERA][BLOCK], point[3][BLOCK], of_bar[CAMERA][BLOCK], point_bar[3][BLOCK];
    double w[BLOCK], first[BLOCK], second[BLOCK], e[BLOCK], g[BLOCK], w_bar[BLOCK];
    for (int b = 0; b < BLOCK; b++) {
        int i = b < count ? b : 0; /* what is behind the last observation is computed and left out */
        for (int j = 0; j < CAMERA; j++) of[j][b] = cameras[CAMERA * pairs[2 * i] + j];
        for (int j = 0; j < 3; j++) point[j][b] = points[3 * pairs[2 * i + 1] + j];
        w[b] = weights[i];
        first[b] = features[2 * i];
        second[b] = features[2 * i + 1];
        e[b] = errors_bar[2 * i];
        g[b] = errors_bar[2 * i + 1];
        w_bar[b] = -2 * weights[i] * weight_errors_bar[i];
    }
    for (int b = 0; b < BLOCK; b++) {
        double from[3], seen[3], seen_bar[3];
        for (int j = 0; j < 3; j++) from[j] = point[j][b] - of[ROTATION + j][b];
        for (int j = 0; j < 3; j++)
            seen[j] = of[3 * j][b] * from[0] + of[3 * j + 1][b] * from[1] + of[3 * j + 2][b] * from[2];
        double over = 1 / seen[2], x = seen[0] * over, y = seen[1] * over, square = x * x + y * y;
        double focal = of[12][b], k1 = of[15][b], k2 = of[16][b];
        double stretch = 1 + square * (k1 + k2 * square), scale = stretch * focal;
        w_bar[b] += e[b] * (x * scale + of[13][b] - first[b]) + g[b] * (y * scale + of[14][b] - second[b]);
        double px = w[b] * e[b], py = w[b] * g[b], along = px * x + py * y;
        double stretch_bar = along * focal, square_bar = stretch_bar * (k1 + 2 * k2 * square);
        double x_bar = px * scale + 2 * x * square_bar, y_bar = py * scale + 2 * y * square_bar;
        seen_bar[0] = x_bar * over;
        seen_bar[1] = y_bar * over;
        seen_bar[2] = -(x_bar * x + y_bar * y) * over;
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) of_bar[3 * j + k][b] = seen_bar[j] * from[k];
        for (int j = 0; j < 3; j++) {
            point_bar[j][b] = of[j][b] * seen_bar[0] + of[3 + j][b] * seen_bar[1] + of[6 + j][b] * seen_bar[2];
            of_bar[ROTATION + j][b] = -point_bar[j][b];
        }
        of_bar[12][b] = along * stretch;
        of_bar[13][b] = px;
        of_bar[14][b] = py;
        of_bar[15][b] = stretch_bar * square;
        of_bar[16][b] = stretch_bar * square * square;
    }
    for (int b = 0; b < count; b++) {
        for (int j = 0; j < CAMERA; j++) cameras_bar[CAMERA * pairs[2 * b] + j] += of_bar[j][b];
        for (int j = 0; j < 3; j++) points_bar[3 * pairs[2 * b + 1] + j] += point_bar[j][b];
        weights_bar[b] = w_bar[b];
    }
}

/* work: 34 n numbers */
void bundle_adjoint(int n, int m, int p, const double *cameras, const double *points, const double *weights,
                    const int *pairs, const double *features, const double *errors_bar, const double *weight_errors_bar,
                    double *cameras_bar, double *points_bar, double *weights_bar, double *work) {
    double *turned = work, *turned_bar = work + CAMERA * n;
    for (int i = 0; i < n; i++) {
        rotation(cameras + 11 * i, turned + CAMERA * i);
        for (int j = 3; j < 11; j++) turned[CAMERA * i + 6 + j] = cameras[11 * i + j];
    }
    for (int i = 0; i < CAMERA * n; i++) turned_bar[i] = 0;
    for (int i = 0; i < 3 * m; i++) points_bar[i] = 0;
    for (int i = 0; i < p; i += BLOCK)
        block(p - i < BLOCK ? p - i : BLOCK, turned, points, weights + i, pairs + 2 * i, features + 2 * i,
              errors_bar + 2 * i, weight_errors_bar + i, turned_bar, points_bar, weights_bar + i);
    for (int i = 0; i < n; i++) {
        rotation_adjoint(cameras + 11 * i, turned_bar + CAMERA * i, cameras_bar + 11 * i);
        for (int j = 3; j < 11; j++) cameras_bar[11 * i + j] = turned_bar[CAMERA * i + 6 + j];
    }
}
