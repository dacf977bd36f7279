// Calls whose loops are shared out: one after another, two at once inside of a third, one that fails and one that
// throws. Prints what was wrong; the thread sanitizer, which it is built with, ends it where there is a race.

#include "sharing.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

constexpr int64_t kMany = 3000;

// Long enough that helpers come in time.
void Work() {
    volatile double sum = 0;
    for (int i = 0; i < 30; ++i) sum = sum + i;
}

// So many loops that write all that the one before has written.
bool InOrder(jax_enzyme::Crew &crew) {
    std::vector<int64_t> numbers(kMany);
    for (int step = 0; step < 20; ++step) {
        jax_enzyme::RunShared(crew, kMany, 64, [&](int64_t lo, int64_t hi) -> int64_t {
            for (int64_t i = lo; i < hi; ++i, Work()) numbers[i] = 2 * numbers[i] + 1;
            return 0;
        });
    }
    return numbers == std::vector<int64_t>(kMany, (1 << 20) - 1);
}

bool Nested(jax_enzyme::Crew &crew) {
    std::vector<std::vector<int64_t>> rows(3, std::vector<int64_t>(kMany));
    jax_enzyme::RunShared(crew, 3, jax_enzyme::kEachIsLong, [&](int64_t first, int64_t last) -> int64_t {
        for (int64_t row = first; row < last; ++row) {
            jax_enzyme::RunShared(crew, kMany, 32, [&, row](int64_t lo, int64_t hi) -> int64_t {
                for (int64_t i = lo; i < hi; ++i, Work()) rows[row][i] += i;
                return 0;
            });
        }
        return 0;
    });
    for (const std::vector<int64_t> &row : rows) {
        if (std::accumulate(row.begin(), row.end(), int64_t{0}) != kMany * (kMany - 1) / 2) return false;
    }
    return true;
}

bool FirstFailure(jax_enzyme::Crew &crew) {
    const auto fail = [](int64_t lo, int64_t hi) -> int64_t {
        for (int64_t i = lo; i < hi; ++i, Work()) {
            if (i >= 1000 && i % 3 == 0) return i;
        }
        return 0;
    };
    return jax_enzyme::RunShared(crew, kMany, 16, fail) == 1002;
}

bool Exception(jax_enzyme::Crew &crew) {
    const auto raise = [](int64_t lo, int64_t hi) -> int64_t {
        for (int64_t i = lo; i < hi; ++i, Work()) {
            if (i == 777) throw std::runtime_error("777");
        }
        return 0;
    };
    try {
        jax_enzyme::RunShared(crew, kMany, 16, raise);
    } catch (const std::runtime_error &) {
        return true;
    }
    return false;
}

} // namespace

int main() {
    xla::ffi::ThreadPool pool(4);
    int wrong = 0;
    for (int call = 0; call < 100; ++call) {
        const auto crew = std::make_shared<jax_enzyme::Crew>(pool, 4);
        const jax_enzyme::CrewTeam team(*crew);
        wrong += !InOrder(*crew) + !Nested(*crew) + !FirstFailure(*crew) + !Exception(*crew);
    }
    std::printf("wrong: %d\n", wrong);
    return wrong != 0;
}
