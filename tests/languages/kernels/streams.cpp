// Kernels that write text: it has no derivative, and goes out once.
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace {
struct Pair {
    double a, b;
};
std::ostream &operator<<(std::ostream &os, const Pair &p) {
    return os << '(' << p.a << ", " << std::setw(8) << std::fixed << std::setprecision(2) << p.b << ')';
}
double checked(double t) {
    if (t > 50) {
        std::ostringstream os;
        os << "t is " << t;
        throw std::runtime_error(os.str());
    }
    return t * t;
}
} // namespace

extern "C" void logged(int n, const double *x, double *y) {
    Pair p{x[0], x[1]};
    std::cerr << "pair " << p << std::endl;
    std::ostringstream os;
    for (int i = 0; i < n; i++) {
        y[i] = checked(x[i]) * p.b;
        os << y[i] << ' ';
    }
    y[0] *= os.str().empty() ? 0 : 2;
}

extern "C" void read_again(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        std::ostringstream os;
        os << x[i];
        y[i] = std::stod(os.str());
    }
}
