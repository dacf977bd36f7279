#include <map>
extern "C" double k(int n, const double *x) {
    std::map<int, double> m;
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < n; i++) m[(int)(x[i] * 997)] += x[i];
    double s = 0;
    for (auto &p : m) s += p.first * p.second;
    return s;
}
