"""C++ whose numbers stand beside texts, counters and links in the nodes of containers."""

from __future__ import annotations

import numpy as np
import pytest

import jax_enzyme as je
from tests.support.engine import agree, by_turns, native, three_way

pytestmark = pytest.mark.slow

NAMED = """
#include <map>
#include <string>
extern "C" void k(int n, const double *x, double *y) {
    std::map<std::string, double> p;
    p["alpha"] = x[0];
    p["a_name_that_is_too_long_to_stand_in_the_string_itself"] = x[1] * x[2];
    p["alpha"] += x[3];
    double s = 0;
    for (auto &kv : p) s += kv.second * kv.first.size();
    for (int i = 0; i < n; i++) y[i] = s * x[i] + p.at("alpha");
}"""
SHARED = """
#include <memory>
#include <vector>
struct Node {
    double v; std::vector<std::shared_ptr<Node>> kids; std::weak_ptr<Node> parent;
    explicit Node(double v) : v(v) {}
    double sum() const {
        double s = v;
        for (auto &k : kids) s += k->sum() * .5;
        if (auto p = parent.lock()) s *= p->v;
        return s;
    }
};
extern "C" void k(int n, const double *x, double *y) {
    auto root = std::make_shared<Node>(x[0]);
    for (int i = 1; i < n; i++) {
        auto child = std::make_shared<Node>(x[i]);
        child->parent = root;
        root->kids.push_back(child);
    }
    for (int i = 0; i < n; i++) y[i] = root->sum() * x[i];
}"""
MISSING = """
#include <optional>
#include <vector>
extern "C" void k(int n, const double *x, double *y) {
    std::vector<std::optional<double>> v(n);
    for (int i = 0; i < n; i++) {
        if (i % 2) v[i] = x[i] * x[i];
        if (i % 4 == 3) v[i].reset();
        ((unsigned char *)&y[i])[0] = 7;
        y[i] = 0;
        for (auto &o : v) y[i] = y[i] * 0.9 + o.value_or(0.5) * x[i];
        ((unsigned char *)&y[i])[0] = (unsigned char)i;
    }
}"""

SWAPPED = """
#include <map>
extern "C" void k(int n, const double *x, double *y) {
    std::map<int, double> m;
    double s = 0;
    for (int i = 0; i < n; i++) m[i % 3] += x[i];
    for (int i = 0; i < n; i++) {
        auto next = m;
        next[i % 2] = s * 0.5 + x[i] * x[i];
        m.swap(next);
        s += m[i % 3] * x[0];
        y[i] = s;
    }
}"""

SOURCES = {"numbers by name": NAMED, "shared and weak pointers": SHARED, "missing": MISSING, "swapped": SWAPPED}


@pytest.mark.parametrize("name", SOURCES)
def test_three_way(name: str) -> None:
    x = np.array([0.83, 1.41, 0.62, 1.07, 0.39])
    kernel = native(SOURCES[name], "k", "n: i32, x: f64[n], out y: f64[n]", {"n": x.size}, lang="c++")
    agree(three_way(kernel, [x], step=1e-6, sweeps=by_turns(list(SOURCES).index(name))), 1e-8, 1e-6)


WAYS = """
#include <queue>
#include <vector>
extern "C" double ways(int n, const double *x) {
  std::vector<std::vector<std::pair<int, double>>> next(n);
  for (int i = 0; i < n; i++) {
    next[i].emplace_back((i + 1) % n, x[i] + 0.1 * i);
    next[i].push_back({(3 * i + 2) % n, x[(i + 1) % n] * 1.7});
  }
  std::vector<double> far(n, 1e9);
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> open;
  far[0] = 0;
  open.emplace(0.0, 0);
  while (!open.empty()) {
    auto [d, i] = open.top();
    open.pop();
    if (d > far[i]) continue;
    for (auto [j, w] : next[i])
      if (d + w < far[j]) far[j] = d + w, open.emplace(far[j], j);
  }
  double s = 0;
  for (double d : far) s += d * d;
  return s;
}"""


def test_records_of_numbers_and_indices_in_a_heap_that_grows() -> None:
    kernel = je.kernel(WAYS, "ways", "n: i32, x: f64[n] -> f64", lang="c++")
    je.check_grads(kernel, (np.linspace(0.5, 1.3, 6),), order=1)


CLASSES = """
#include <cmath>
#include <memory>
#include <new>
#include <vector>
struct Op { virtual double of(double) const = 0; virtual ~Op() {} };
struct Scale : Op { double a; Scale(double v) : a(v) {} double of(double x) const override { return a * x; } };
struct Power : Op {
  int n; double b;
  Power(int m, double v) : n(m), b(v) {}
  double of(double x) const override { double y = b; for (int i = 0; i < n; i++) y *= x; return y; }
};
struct Sum : Op {
  std::vector<double> c;
  Sum(const double *x, int n) : c(x, x + n) {}
  double of(double x) const override { double y = 0; for (double v : c) y += v * x; return y; }
};
struct Chain : Op {
  std::unique_ptr<Op> f, g;
  Chain(std::unique_ptr<Op> p, std::unique_ptr<Op> q) : f(std::move(p)), g(std::move(q)) {}
  double of(double x) const override { return std::sin(f->of(g->of(x))); }
};
extern "C" double list(int n, const double *x) {
  std::vector<std::unique_ptr<Op>> all;
  all.push_back(std::make_unique<Scale>(x[0]));
  all.push_back(std::make_unique<Sum>(x, n));
  all.push_back(std::make_unique<Power>(3, x[1]));
  all.push_back(std::make_unique<Chain>(std::make_unique<Scale>(x[2]), std::make_unique<Sum>(x + 1, n - 1)));
  double z = x[3];
  for (auto &op : all) z = op->of(z);
  return z;
}
extern "C" double reused(int n, const double *x) {
  alignas(16) char place[64];
  Op *op = new (place) Scale(x[0]);
  double z = x[1];
  for (int t = 0; t < 3 * n; t++) {
    z = std::sin(op->of(z) + 0.3);
    if (t % 3 == 2) op = t % 2 ? (Op *)new (place) Power(t % 4, z) : (Op *)new (place) Scale(z);
  }
  return z;
}"""


@pytest.mark.filterwarnings("ignore::jax_enzyme.ShortcutWarning")  # an exponent in the place of a factor
@pytest.mark.parametrize("symbol", ["list", "reused"])
def test_objects_of_classes_with_other_members(symbol: str) -> None:
    kernel = je.kernel(CLASSES, symbol, "n: i32, x: f64[n] -> f64", lang="c++")
    je.check_grads(kernel, (np.linspace(0.6, 0.9, 4),), order=1)
