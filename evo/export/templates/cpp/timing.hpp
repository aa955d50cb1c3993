// How latencies are taken and summed up: the protocol of the run that this comes from.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "case.hpp"

namespace harness {

constexpr double WARM_S = 0.05;      // a GPU that was idle has lowered its clocks
constexpr double MOST_WARM_S = 5.0;  // a slow kernel is warm sooner than its number of launches says
constexpr int LATE = 3;              // a stream that could not be held so often is no longer held

struct Latency {
    double median_us, low_us, high_us;
    int samples;
    bool held;
};

// The median with its 95 % interval from order statistics: the number of samples below the true median is binomial
// (Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2). Below six samples it is the whole range.
inline Latency summarise(std::vector<double> samples, bool held) {
    std::sort(samples.begin(), samples.end());
    const std::size_t n = samples.size();
    std::size_t rank = 0;
    double below = 0;
    for (std::size_t k = 0; k < (n + 1) / 2; ++k) {
        below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
        if (below > 0.025) break;
        rank = k;
    }
    const double median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
    return {median, samples[rank], samples[n - 1 - rank], static_cast<int>(n), held};
}

class Stopwatch {
  public:
    // Args: untimed launches before the timed ones; timed launches; whether the caches are flushed before each.
    Stopwatch(const Gpu& gpu, Clock& clock, int warmup, int launches, bool cold)
        : gpu_(gpu), clock_(clock), warmup_(warmup), launches_(launches), flush_bytes_(cold ? 2 * std::size_t(gpu.l2_bytes) : 0) {
        if (cold) flush_ = std::make_unique<Memory>(gpu.driver, flush_bytes_, 256, "a buffer that flushes the caches");
    }

    Latency measure(CaseRun& run) {
        warm_up(run);
        std::vector<double> samples;
        int late = 0;
        while (static_cast<int>(samples.size()) < launches_) {
            run.prepare();
            if (flush_) flush();
            bool held = late < LATE;
            const bool wanted = held;
            const double taken = clock_.microseconds([&run] { run.queue(); }, held);
            if (wanted && !held) ++late;
            else samples.push_back(taken);
        }
        return summarise(samples, late < LATE);
    }

  private:
    void warm_up(CaseRun& run) const {
        const auto begin = std::chrono::steady_clock::now();
        const auto spent_s = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
        for (int count = 0; count == 0 || ((count < warmup_ || spent_s() < WARM_S) && spent_s() < MOST_WARM_S); ++count) {
            run.prepare();
            run.queue();
            gpu_.wait("warming up");
        }
    }

    // Twice the last level is written: the caches hold something else afterwards.
    void flush() {
        const CUresult code = gpu_.driver.fill32(flush_->address, ++flushes_, flush_bytes_ / 4, gpu_.stream);
        gpu_.driver.check(code, "cuMemsetD32Async, flushing the caches");
    }

    const Gpu& gpu_;
    Clock& clock_;
    int warmup_, launches_;
    std::size_t flush_bytes_;
    std::unique_ptr<Memory> flush_;
    unsigned flushes_ = 0;
};

}  // namespace harness
