// Compiles best.cu, runs the stored cases on a GPU, checks the outputs and prints the latencies.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include "case.hpp"
#include "options.hpp"
#include "plans.hpp"
#include "timing.hpp"

using namespace harness;

namespace {

// One program for each distinct set of macros and compiler options.
class Programs {
  public:
    Programs(const Compiler& compiler, const Export& what, std::string source, std::string arch)
        : compiler_(compiler), what_(what), source_(std::move(source)), arch_(std::move(arch)) {}

    const Program& of(const Plan& plan) {
        const auto key = std::make_pair(plan.defines, plan.options);
        const auto known = made_.find(key);
        if (known != made_.end()) return known->second;
        Program made = compiler_.compile(source_, "best.cu", what_.kernels, arch_, plan.defines, plan.options);
        return made_.emplace(key, std::move(made)).first->second;
    }

  private:
    const Compiler& compiler_;
    const Export& what_;
    std::string source_, arch_;
    std::map<std::pair<std::vector<std::string>, std::vector<std::string>>, Program> made_;
};

bool chosen(const Options& options, const Case& one) {
    const auto& names = options.cases;
    return names.empty() || std::find(names.begin(), names.end(), one.name) != names.end();
}

void warn_of_another_gpu(const Gpu& gpu, const Target& target) {
    if (!target.depends || (gpu.num_sms == target.num_sms && gpu.l2_bytes == target.l2_bytes)) return;
    std::fprintf(stderr,
                 "warning: the launches are those for %s (%d multiprocessors, %d bytes of L2); this GPU has %d and %d. "
                 "A run on this GPU would launch otherwise.\n",
                 target.name.c_str(), target.num_sms, target.l2_bytes, gpu.num_sms, gpu.l2_bytes);
}

void report(const Export& what, const Case& one, const Verdict& verdict, const Latency& latency) {
    if (verdict.wrong) {
        std::printf("%s: WRONG, %s\n", one.name.c_str(), verdict.words.c_str());
        return;
    }
    std::printf("%s: right (%.2g of the tolerance), %.4g us (95 %%: %.4g to %.4g; %d launches, %s caches)",
                one.name.c_str(), verdict.error, latency.median_us, latency.low_us, latency.high_us, latency.samples,
                what.cold ? "cold" : "warm");
    if (one.run_latency_us > 0) std::printf("; in the run %.4g us on %s", one.run_latency_us, what.target.name.c_str());
    if (!latency.held) std::printf("; the stream could not be held: this program's own speed is in the figure");
    std::printf("\n");
}

int run_cases(const Export& what, const Options& options, const Gpu& gpu, const Compiler& compiler, Programs& programs,
              const std::string& arch) {
    Clock clock(gpu, compiler.compile(HOLD_SOURCE, "hold.cu", {HOLD_NAME}, arch, {}, {}).image);
    Stopwatch stopwatch(gpu, clock, what.warmup, what.launches, what.cold);
    int code = RIGHT;
    for (const Case& one : what.cases) {
        if (!chosen(options, one)) continue;
        const Module module(gpu, programs.of(one.plan), one.plan);
        CaseRun run(gpu, module, one, options.folder + "/cases/" + one.name);
        run.prepare();
        run.queue();
        gpu.wait("case " + one.name);
        Verdict verdict = run.verdict();
        Latency latency{};
        if (!verdict.wrong) {
            latency = stopwatch.measure(run);
            verdict = run.verdict();  // of the last timed launch
        }
        report(what, one, verdict, latency);
        if (verdict.wrong) code = WRONG;
    }
    return code;
}

int compile_only(const Export& what, const Options& options, const Compiler& compiler, const std::string& source) {
    if (options.arch.empty()) throw CannotRun("--compile-only: name the target with --arch, e.g. --arch sm_90a");
    Programs programs(compiler, what, source, options.arch);
    for (const Case& one : what.cases) {
        if (!chosen(options, one)) continue;
        const std::size_t bytes = programs.of(one.plan).image.size();
        std::printf("%s: compiles for %s with NVRTC %s, %zu bytes\n", one.name.c_str(), options.arch.c_str(),
                    compiler.version().c_str(), bytes);
    }
    return RIGHT;
}

int run(int argc, char** argv) {
    const Export what = exported();
    const Options options = parse(argc, argv, what);
    const auto compiler = [&] { return Compiler(options.nvrtc, options.includes, options.folder + "/include"); };
    const std::string source = read_file(options.folder + "/best.cu");
    if (options.compile_only) return compile_only(what, options, compiler(), source);
    const Driver driver;
    const Gpu gpu(driver, options.device);
    const Compiler nvrtc = compiler();
    const std::string arch = options.arch.empty() ? gpu.arch : options.arch;
    std::printf("%s (%s) on %s, compiled for %s with NVRTC %s\n", what.workload.c_str(), what.origin.c_str(),
                gpu.name.c_str(), arch.c_str(), nvrtc.version().c_str());
    warn_of_another_gpu(gpu, what.target);
    Programs programs(nvrtc, what, source, arch);
    return run_cases(what, options, gpu, nvrtc, programs, arch);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const KernelFault& fault) {
        std::fprintf(stderr, "WRONG: %s\n", fault.what());
        return WRONG;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cannot run: %s\n", error.what());
        return CANNOT_RUN;
    }
}
