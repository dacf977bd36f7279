"""C++ whose numbers stand beside texts, counters and links in the nodes of containers."""

from __future__ import annotations

import numpy as np
import pytest

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
KEYED = """
#include <map>
#include <vector>
struct Body { float x, v; };
struct Pair { float gap[2]; int count; Body *a, *b; };
extern "C" void k(int n, const double *x, double *y) {
    std::vector<Body> bodies(n);
    for (int i = 0; i < n; i++) bodies[i] = {(float)x[i], 0};
    std::map<std::pair<Body *, Body *>, Pair> pairs;
    for (int t = 0; t < 2; t++) {
        for (int i = 1; i < n; i++) {
            Body *a = &bodies[i - 1], *b = &bodies[i];
            Pair p = {{b->x - a->x, 0}, 1, a, b};
            if (p.gap[0] > 4) pairs.erase({a, b});
            else if (auto it = pairs.find({a, b}); it != pairs.end()) it->second.gap[1] = p.gap[0];
            else pairs.insert({{a, b}, p});
        }
        for (auto &e : pairs) {
            Pair &p = e.second;
            for (int i = 0; i < 2; i++) p.a->v += p.gap[i] * p.gap[i], p.b->v -= p.gap[i];
        }
        for (auto &b : bodies) b.x += 0.1f * b.v;
    }
    for (int i = 0; i < n; i++) y[i] = bodies[i].x;
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


SOURCES = {"numbers by name": NAMED, "pairs by pointers": KEYED, "shared and weak pointers": SHARED, "missing": MISSING}
SINGLE = ("pairs by pointers",)
"""Those that compute in single precision."""


@pytest.mark.parametrize("name", SOURCES)
def test_three_way(name: str) -> None:
    x = np.array([0.83, 1.41, 0.62, 1.07, 0.39])
    kernel = native(SOURCES[name], "k", "n: i32, x: f64[n], out y: f64[n]", {"n": x.size}, lang="c++")
    step, between, beside = (1e-3, 1e-6, 1e-2) if name in SINGLE else (1e-6, 1e-8, 1e-6)
    agree(three_way(kernel, [x], step=step, sweeps=by_turns(list(SOURCES).index(name))), between, beside)
