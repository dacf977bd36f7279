// Objects with static storage: constructed, used, changed and destroyed.
#include <cmath>
#include <map>
#include <string>
#include <vector>

static const std::vector<double> weights = {1.0, 2.0, 3.0};
static std::map<int, double> table = {{0, 2.0}, {1, 3.0}};
struct Settings {
    double scale;
    Settings() : scale(std::sqrt(4.0)) {}
};
static Settings settings;
static const double numbers[3] = {std::pow(2.0, settings.scale), std::exp(1.0), std::log(3.0)};
static std::vector<double> never_used(1000, settings.scale);

extern "C" {
void constant_vector(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = weights[i % 3] * x[i] * x[i];
}
void map_that_grows(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        table[i % 4] += x[i];
        y[i] = table[i / 2] * x[i] + table.size();
    }
}
void numbers_that_are_read(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] = numbers[i % 3] * x[i] * x[i];
}
void object_of_a_function(int n, const double *x, double *y) {
    static thread_local std::vector<double> seen;
    static const std::string name = "a name that is too long to be stored in place";
    for (int i = 0; i < n; i++) {
        seen.push_back(i ? seen.back() * x[i] : x[0]);
        y[i] = seen[i / 2] * name.size() + seen.size();
    }
}
}
