/* Great-circle distances between all pairs of points, upper triangle mirrored through two stores. */
#include <math.h>

void haversine(int n, const double *lat, const double *lon, double *dist) {
    for (int i = 0; i < n; i++) {
        dist[i * n + i] = 0;
        for (int j = i + 1; j < n; j++) {
            double s = sin(0.5 * (lat[i] - lat[j])), t = sin(0.5 * (lon[i] - lon[j]));
            double h = s * s + cos(lat[i]) * cos(lat[j]) * t * t;
            dist[i * n + j] = dist[j * n + i] = 2 * atan2(sqrt(h), sqrt(1 - h));
        }
    }
}
