#include <algorithm>
#include <vector>
extern "C" double k(int n, const double *x) {
    std::vector<std::vector<double>> d(n, std::vector<double>(n, 0.0));
    for (int r = 0; r < 4; r++)
        for (int i = 1; i < n; i++)
            for (int j = 1; j < n; j++) d[i][j] = x[i] * x[j] + 0.3 * std::max(d[i - 1][j], d[i][j - 1]);
    return d[n - 1][n - 1];
}
