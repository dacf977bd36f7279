// Kernels over the C++ standard library.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <valarray>
#include <variant>
#include <vector>

extern "C" void sorted(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
    std::sort(y, y + n);
    for (int i = 0; i < n; i++) y[i] *= i + 1;
}

extern "C" void sorted_stably(int n, const double *x, double *y) {
    std::vector<double> v(x, x + n);
    std::stable_sort(v.begin(), v.end(), [](double a, double b) { return a > b; });
    for (int i = 0; i < n; i++) y[i] = v[i] * (i + 1);
}

extern "C" void selected(int n, const double *x, double *y) {
    std::vector<double> v(x, x + n);
    std::nth_element(v.begin(), v.begin() + n / 2, v.end());
    y[0] = v[n / 2] * v[n / 2];
    std::partial_sort(v.begin(), v.begin() + 2, v.end());
    y[1] = v[0] * v[1];
    std::make_heap(v.begin(), v.end());
    y[2] = v[0];
}

namespace {
struct P {
    double v;
    int i;
};
} // namespace
extern "C" void sorted_records(int n, const double *x, double *y) {
    std::vector<P> p;
    for (int i = 0; i < n; i++) p.push_back({x[i] * x[i], i});
    std::sort(p.begin(), p.end(), [](const P &a, const P &b) { return a.v < b.v; });
    for (int i = 0; i < n; i++) y[i] = p[i].v * (i + 1) + x[p[i].i];
}

extern "C" void vectors(int n, const double *x, double *y) {
    std::vector<double> v;
    for (int i = 0; i < n; i++) v.push_back(x[i] * x[i]);
    v.resize(n + 2, 3.0);
    v.insert(v.begin(), x[0]);
    v.erase(v.begin() + 1);
    std::byte memory[2048];
    std::pmr::monotonic_buffer_resource resource(memory, sizeof(memory));
    std::pmr::vector<double> w(v.begin(), v.end(), &resource);
    w.reserve(100);
    std::transform(w.begin(), w.end(), v.begin(), w.begin(), [](double a, double b) { return a * b + 1; });
    double s = std::accumulate(w.begin(), w.end(), 0.0) + std::inner_product(v.begin(), v.end(), w.begin(), 0.0) +
               *std::max_element(v.begin(), v.end());
    for (int i = 0; i < n; i++) y[i] = w[i] * s;
}

extern "C" void nested_vectors(int n, const double *x, double *y) {
    std::vector<std::vector<double>> a(n, std::vector<double>(n));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) a[i][j] = x[i] * x[j] + (i == j);
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int j = 0; j < n; j++) y[i] += a[i].at(j) * a[j][i];
    }
}

extern "C" void small_closure(int n, const double *x, double *y) {
    std::array<double, 3> a{x[0], x[1], x[2]};
    std::function<double(double)> g = [&](double t) { return t * a[0] + a[1] * a[2]; };
    for (int i = 0; i < n; i++) y[i] = g(x[i]);
}

extern "C" void big_closure(int n, const double *x, double *y) {
    std::array<double, 5> a{x[0], x[1], x[2], x[3], x[4]};
    std::function<double(double)> g = [a](double t) { return t * a[0] + a[1] * a[2]; };
    std::function<double(double)> h;
    if (n > 3)
        h = g;
    else
        h = [](double t) { return t; };
    for (int i = 0; i < n; i++) y[i] = h(x[i]);
}

extern "C" void complex_numbers(int n, const double *x, double *y) {
    std::complex<double> z(x[0], x[1]);
    for (int i = 0; i < n; i++) {
        z = z * z / std::complex<double>(2, x[i]) + std::exp(z) * std::conj(z) + std::pow(z, 2) + std::sqrt(z);
        z /= std::abs(z);
        y[i] = std::norm(z) + z.real() + std::arg(z) + std::polar(x[i], .3).imag();
    }
}

extern "C" void value_arrays(int n, const double *x, double *y) {
    std::valarray<double> v(x, n);
    std::valarray<double> w = v * v + std::sin(v) * 2.0;
    double s = w.sum() + w.max();
    w = w.cshift(1);
    w[std::slice(0, 2, 2)] *= std::valarray<double>(3.0, 2);
    for (int i = 0; i < n; i++) y[i] = w[i] * s;
}

struct B {
    virtual ~B() {}
    virtual double f(double) const = 0;
};
struct D : B {
    double k;
    D(double k);
    double f(double) const override;
};
// As in a file of their own: compilers make aliases of constructors that are not inline.
D::D(double k) : k(k) {}
double D::f(double t) const { return k + t; }
namespace {
struct C : B {
    double k;
    C(double k) : k(k) {}
    double f(double t) const override { return k * t * t; }
};
} // namespace
extern "C" void virtual_functions(int n, const double *x, double *y) {
    std::vector<std::unique_ptr<B>> v;
    for (int i = 0; i < n; i++) {
        if (i % 2)
            v.push_back(std::make_unique<C>(x[i]));
        else
            v.emplace_back(new D(x[i]));
    }
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (auto &p : v) y[i] += p->f(x[i]);
    }
}

namespace {
struct N {
    double v;
    std::shared_ptr<N> next;
};
} // namespace
extern "C" void shared_list(int n, const double *x, double *y) {
    std::shared_ptr<N> h;
    for (int i = 0; i < n; i++) {
        auto p = std::make_shared<N>();
        p->v = x[i];
        p->next = h;
        h = p;
    }
    int i = 0;
    for (auto p = h; p; p = p->next) y[i++] = p->v * p->v;
}

// What an exception says is asked for in a handler, and distances of pointers are checked in derivatives.
namespace {
struct Bad : std::exception {};
struct Checked {
    double t;
    Bad bad; // of which what is thrown is a copy
    explicit Checked(double t) : t(t) {
        if (t > 5) throw bad;
    }
};
double g(double t) {
    Checked c(t);
    if (t > 0.8) throw std::runtime_error("big");
    return c.t * t;
}
} // namespace
extern "C" void caught(int n, const double *x, double *y) {
    std::vector<double> v;
    std::string said;
    for (int i = 0; i < n; i++) {
        try {
            v.push_back(g(x[i]));
        } catch (const std::exception &e) {
            said += e.what();
            v.push_back(x[i] * said.size());
        }
    }
    for (int i = 0; i < n; i++) y[std::div(i, n).rem] = v[i] * v.at(0);
}

namespace {
const std::vector<double> &tab() {
    static const std::vector<double> t = [] {
        std::vector<double> r;
        for (int i = 0; i < 8; i++) r.push_back(std::cos(i));
        return r;
    }();
    return t;
}
} // namespace
extern "C" void static_table(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] * tab()[i];
}

namespace {
template <class E> struct Ex {
    const E &s() const { return static_cast<const E &>(*this); }
};
template <class A, class B> struct Add : Ex<Add<A, B>> {
    const A &a;
    const B &b;
    Add(const A &a, const B &b) : a(a), b(b) {}
    double operator[](int i) const { return a[i] + b[i]; }
};
template <class A, class B> struct Mul : Ex<Mul<A, B>> {
    const A &a;
    const B &b;
    Mul(const A &a, const B &b) : a(a), b(b) {}
    double operator[](int i) const { return a[i] * b[i]; }
};
struct V : Ex<V> {
    double *d;
    int n;
    V(int n) : d(new double[n]), n(n) {}
    ~V() { delete[] d; }
    double operator[](int i) const { return d[i]; }
    template <class E> V &operator=(const Ex<E> &e) {
        for (int i = 0; i < n; i++) d[i] = e.s()[i];
        return *this;
    }
};
template <class A, class B> Add<A, B> operator+(const Ex<A> &a, const Ex<B> &b) { return {a.s(), b.s()}; }
template <class A, class B> Mul<A, B> operator*(const Ex<A> &a, const Ex<B> &b) { return {a.s(), b.s()}; }
} // namespace
extern "C" void expression_templates(int n, const double *x, double *y) {
    V a(n), b(n), c(n);
    for (int i = 0; i < n; i++) {
        a.d[i] = x[i];
        b.d[i] = x[i] * 2;
    }
    c = a * b + a;
    for (int i = 0; i < n; i++) y[i] = c[i];
}

extern "C" void with_string(int n, const double *x, double *y) {
    std::string s = "hello world this is long enough to be on the heap";
    s += "x";
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i] * s.size();
}

extern "C" void containers(int n, const double *x, double *y) {
    std::map<int, double> m;
    for (int i = 0; i < n; i++) m[(i * 7) % n] += x[i] * x[i];
    std::deque<double> d;
    for (int i = 0; i < n; i++) d.push_front(x[i]);
    std::list<double> l(d.begin(), d.end());
    for (int i = 0; i < n; i++) {
        y[i] = m[i] * d[i];
    }
    for (double t : l) y[0] += t * t;
}

extern "C" void permuted(int n, const double *x, double *y) {
    std::vector<int> p(n);
    std::iota(p.begin(), p.end(), 0);
    std::sort(p.begin(), p.end(), [&](int a, int b) { return x[a] > x[b]; });
    std::vector<double> c(n);
    std::partial_sum(x, x + n, c.begin());
    auto it = std::lower_bound(c.begin(), c.end(), 2.0);
    for (int i = 0; i < n; i++) y[i] = x[p[i]] * c[i] * (it - c.begin() + 1);
    std::reverse(y, y + n);
    std::rotate(y, y + 1, y + n);
}

extern "C" void heap_order(int n, const double *x, double *y) {
    std::priority_queue<double> q;
    for (int i = 0; i < n; i++) q.push(x[i] * x[i]);
    for (int i = 0; i < n; i++) {
        y[i] = q.top() * (i + 1);
        q.pop();
    }
}

extern "C" void sum_types(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        std::optional<double> o;
        if (x[i] > .5) o = x[i] * x[i];
        std::variant<int, double> v = i;
        if (i % 2) v = x[i];
        auto [a, b] = std::tuple<double, double>(x[i], 2 * x[i]);
        y[i] = o.value_or(1) * a + b + (v.index() ? std::get<double>(v) : 3);
    }
}

extern "C" void hash_tables(int n, const double *x, double *y) {
    std::unordered_map<int, double> m;
    for (int i = 0; i < n; i++) m[(i * 3) % n] += x[i] * x[i];
    for (int i = 0; i < n; i++) y[i] = m[i] * x[i];
}

namespace {
struct Node {
    double v;
    std::unique_ptr<Node> left, right;
};
void add(std::unique_ptr<Node> &t, double v) {
    if (!t) {
        t = std::make_unique<Node>();
        t->v = v;
    } else
        add(v < t->v ? t->left : t->right, v);
}
double sum(const Node *t, int depth) {
    return t ? t->v * t->v * depth + sum(t->left.get(), depth + 1) + sum(t->right.get(), depth + 1) : 0;
}
} // namespace
extern "C" void owned_tree(int n, const double *x, double *y) {
    std::unique_ptr<Node> t;
    for (int i = 0; i < n; i++) add(t, x[i]);
    for (int i = 0; i < n; i++) y[i] = sum(t.get(), 1) * x[i];
}

namespace {
struct Shape {
    double a;
    Shape(double a) : a(a) {}
    virtual ~Shape() {}
};
struct Left : virtual Shape {
    Left(double a) : Shape(a) {}
};
struct Right : virtual Shape {
    double c;
    Right(double c) : Shape(c), c(c) {}
};
struct Hidden {
    double e;
    Hidden(double e) : e(e) {}
    virtual ~Hidden() {}
};
struct Both : Left, Right, private Hidden {
    Both(double a, double c) : Shape(a), Left(a), Right(c), Hidden(a) {}
};
struct Seen : Hidden, Shape {
    Seen(double e) : Hidden(e), Shape(2 * e) {}
};
} // namespace
extern "C" void dynamic_casts(int n, const double *x, double *y) {
    Shape *shapes[3] = {new Both(x[0], x[1]), new Right(x[2]), new Seen(x[3])};
    for (int i = 0; i < n; i++) {
        Shape *s = shapes[i % 3];
        y[i] = s->a * x[i];
        if (auto *r = dynamic_cast<Right *>(s)) {
            y[i] *= r->c;
            if (dynamic_cast<Left *>(r)) y[i] *= 3;
        }
        if (auto *h = dynamic_cast<Hidden *>(s)) y[i] *= h->e;
    }
    for (auto *s : shapes) delete s;
}

// Numbers by name, of short names and long ones.
extern "C" void named_numbers(int n, const double *x, double *y) {
    const char *names[] = {"pressure", "v", "a name that is too long to lie in the string itself"};
    std::unordered_map<std::string, double> sums;
    for (int i = 0; i < n; i++) sums[names[i % 3]] += x[i] * x[i];
    double all = 0;
    for (auto &entry : sums) all += entry.second * entry.first.size();
    for (int i = 0; i < n; i++) y[i] = all * sums.find(names[i % 3])->second * x[i];
}

// Shapes own their material together, and say what they hit by an optional record of numbers and a pointer.
namespace {
struct Material {
    double albedo, mirror;
};
struct Hit {
    double t, normal;
    const Material *material;
};
struct Surface {
    std::shared_ptr<Material> material;
    explicit Surface(std::shared_ptr<Material> m) : material(std::move(m)) {}
    virtual ~Surface() = default;
    virtual std::optional<Hit> hit(double from, double slope) const = 0;
};
struct Disc : Surface {
    double centre, radius;
    Disc(double c, double r, std::shared_ptr<Material> m) : Surface(std::move(m)), centre(c), radius(r) {}
    std::optional<Hit> hit(double from, double slope) const override {
        double b = centre - from, inside = radius * radius - slope * slope;
        if (inside <= 0 || b - std::sqrt(inside) < 1e-3) return std::nullopt;
        return Hit{b - std::sqrt(inside), slope / radius, material.get()};
    }
};
struct Wall : Surface {
    double at;
    Wall(double at, std::shared_ptr<Material> m) : Surface(std::move(m)), at(at) {}
    std::optional<Hit> hit(double from, double slope) const override {
        if (at - from < 1e-3) return {};
        return Hit{(at - from) * std::sqrt(1 + slope * slope), 0.1, material.get()};
    }
};
double shade(const std::vector<std::unique_ptr<Surface>> &surfaces, double from, double slope, int depth) {
    std::optional<Hit> nearest;
    for (auto &surface : surfaces)
        if (auto hit = surface->hit(from, slope); hit && (!nearest || hit->t < nearest->t)) nearest = hit;
    if (!nearest) return 0.2 * slope;
    double c = nearest->material->albedo * std::exp(-nearest->t) + nearest->normal;
    return depth ? c + nearest->material->mirror * shade(surfaces, from + nearest->t, slope / 2, depth - 1) : c;
}
} // namespace
extern "C" void shaded(int n, const double *x, double *y) {
    auto dull = std::make_shared<Material>(Material{x[0], 0.1}), bright = std::make_shared<Material>(Material{0.9, x[1]});
    std::vector<std::unique_ptr<Surface>> surfaces;
    for (int i = 0; i < n; i++) surfaces.push_back(std::make_unique<Disc>(3 * i + x[i], x[i], i % 2 ? dull : bright));
    surfaces.emplace_back(new Wall(3 * n + 2 * x[2], bright));
    for (int i = 0; i < n; i++) y[i] = shade(surfaces, 0, 0.3 * x[i], 3);
}

// Characters moved at places that nobody knows, in objects with numbers and virtual functions.
namespace {
struct Step {
    double v;
    char *name, text[16];
    virtual double go(double y) const { return v * y; }
    virtual ~Step() = default;
};
struct Shift : Step {
    double go(double y) const override { return v + y; }
};
} // namespace
extern "C" void named_steps(int n, const double *x, double *y) {
    std::vector<std::unique_ptr<Step>> steps;
    for (int i = 0; i < n; i++) {
        steps.push_back(i % 2 ? std::make_unique<Step>() : std::make_unique<Shift>());
        Step &step = *steps.back();
        step.v = x[i] * x[i];
        step.name = step.text;
        std::memset(step.text, 'a' + i, 15);
        step.text[15] = 0;
    }
    for (int i = 0; i < n; i++) std::memmove(steps[i]->name + i % 3, steps[i * 3 % n]->name + i % 4, 1 + i % 7);
    for (int i = 0; i < n; i++) y[i] = steps[i]->go(x[i]) * (steps[i]->name[1] > 'c' ? x[0] : 2);
}
