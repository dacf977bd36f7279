/* Two-dimensional convolution with zero padding: a branch inside the innermost loop. */
#include <math.h>

void conv2d(int h, int w, int k, const double *image, const double *kernel, double *out) {
    for (int i = 0; i < h; i++)
        for (int j = 0; j < w; j++) {
            double sum = 0;
            for (int a = 0; a < k; a++)
                for (int b = 0; b < k; b++) {
                    int r = i + a - k / 2, c = j + b - k / 2;
                    if (r < 0 || r >= h || c < 0 || c >= w) continue;
                    sum += image[r * w + c] * kernel[a * k + b];
                }
            out[i * w + j] = tanh(sum);
        }
}
