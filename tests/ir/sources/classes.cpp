// Templates, lambdas, virtual calls, exceptions, containers, static initialisers.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace shapes {
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
    virtual const char *name() const { return "shape"; }
};
struct Circle final : Shape {
    double radius;
    explicit Circle(double r) : radius(r) {}
    double area() const override { return M_PI * radius * radius; }
};
struct Named { std::string label; virtual ~Named() {} };
struct Square : Shape, virtual Named {
    double side = 1.0;
    double area() const override { return side * side; }
    const char *name() const override { return label.c_str(); }
};
}  // namespace shapes

template <typename T, int N>
struct Dual {
    T value{};
    std::array<T, N> parts{};
    Dual operator*(const Dual &o) const {
        Dual r;
        r.value = value * o.value;
        for (int i = 0; i < N; i++) r.parts[i] = value * o.parts[i] + parts[i] * o.value;
        return r;
    }
};
template struct Dual<float, 3>;

static std::vector<double> history(4, 1.5);
thread_local std::string last_error = "none";
inline int shared_counter = 3;
constexpr std::array<double, 3> weights{0.25, 0.5, 0.25};

struct Guard {
    int &count;
    explicit Guard(int &c) : count(c) { ++count; }
    ~Guard() noexcept(false) { if (--count < 0) throw std::runtime_error("count"); }
};

double risky(int n) {
    Guard guard(shared_counter);
    if (n == 3) throw std::invalid_argument("three");
    if (n == 4) throw 4;
    return std::sqrt(n);
}

double handled(int n) try {
    Guard guard(shared_counter);
    return risky(n) + history.at(n);
} catch (const std::logic_error &e) {
    last_error = e.what();
    return -1;
} catch (int code) {
    return code;
} catch (...) {
    throw;
}

double total_area(const std::vector<std::unique_ptr<shapes::Shape>> &all) {
    double s = 0;
    for (auto &shape : all) {
        s += shape->area();
        if (auto *c = dynamic_cast<shapes::Circle *>(shape.get())) s += c->radius;
    }
    return s;
}

double integrate(const std::function<double(double)> &f, double a, double b, int n) {
    double h = (b - a) / n, s = 0;
    for (int i = 0; i < n; i++) s += f(a + (i + 0.5) * h) * weights[i % 3];
    return s * h;
}

double closure(double k) {
    std::map<int, double> seen;
    auto f = [k, &seen](double x) { return seen[int(x)] = std::exp(-k * x); };
    std::vector<double> v(10);
    std::iota(v.begin(), v.end(), 1.0);
    std::sort(v.begin(), v.end(), [](double a, double b) { return a > b; });
    return integrate(f, 0, 1, 100) + std::accumulate(v.begin(), v.end(), 0.0);
}

std::unique_ptr<shapes::Shape> make(int kind) {
    if (kind) return std::make_unique<shapes::Circle>(2.0);
    auto square = std::make_unique<shapes::Square>();
    square->label = "sq";
    return square;
}

auto member = &shapes::Circle::area;
double through(const shapes::Circle &c) { return (c.*member)() + Dual<double, 2>{}.value; }
