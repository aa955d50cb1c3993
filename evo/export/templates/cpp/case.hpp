// One case on the GPU: its program, its buffers, its launches.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "globals.hpp"
#include "gpu.hpp"
#include "npy.hpp"
#include "nvrtc.hpp"
#include "plan.hpp"

namespace harness {

constexpr unsigned PORTABLE_CLUSTER = 8;
constexpr unsigned char POISON = 0xff;  // a NaN in every floating format, -1 in integers

class Module {
  public:
    Module(const Gpu& gpu, const Program& program, const Plan& plan) : gpu_(gpu) {
        const Driver& driver = gpu.driver;
        driver.check(driver.module_load(&module_, program.image.data()), "cuModuleLoadData of best.cu");
        for (const Launch& launch : plan.launches) {
            CUfunction& function = functions_[launch.kernel];
            if (function) continue;
            const std::string what = "kernel " + launch.kernel;
            driver.check(driver.module_function(&function, module_, program.symbols.at(launch.kernel).c_str()), what);
            allow(function, plan, launch.kernel);
        }
        globals_ = std::make_unique<Globals>(driver, module_, program.image);
    }

    ~Module() {
        globals_.reset();
        gpu_.driver.module_unload(module_);
    }

    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    CUfunction function(const std::string& kernel) const { return functions_.at(kernel); }
    const Globals& globals() const { return *globals_; }

  private:
    // Opt in to what a kernel does not get unless it is asked for.
    void allow(CUfunction function, const Plan& plan, const std::string& kernel) const {
        unsigned shared_bytes = 0;
        for (const Launch& launch : plan.launches)
            if (launch.kernel == kernel) shared_bytes = std::max(shared_bytes, launch.shared_bytes);
        const auto set = [&](CUfunction_attribute which, unsigned value) {
            gpu_.driver.check(gpu_.driver.function_attribute(function, which, static_cast<int>(value)),
                              "cuFuncSetAttribute " + std::to_string(which) + " = " + std::to_string(value) +
                                  " for kernel " + kernel);
        };
        set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes);
        if (plan.clustered && plan.cluster.x * plan.cluster.y * plan.cluster.z > PORTABLE_CLUSTER)
            set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    }

    const Gpu& gpu_;
    CUmodule module_ = nullptr;
    std::map<std::string, CUfunction> functions_;
    std::unique_ptr<Globals> globals_;
};

class CaseRun {
  public:
    // Args: `folder` holds the case's arrays.
    CaseRun(const Gpu& gpu, const Module& module, const Case& what, const std::string& folder)
        : gpu_(gpu), module_(module), case_(what), folder_(folder) {
        for (const Buffer& buffer : what.buffers) place(buffer);
        for (const Workspace& workspace : what.plan.workspaces) {
            const auto memory = std::make_shared<Memory>(gpu.driver, workspace.bytes, 256, "workspace " + workspace.name);
            values_[workspace.name] = Value{{}, memory, nullptr, workspace.bytes, true};
        }
        for (auto& [name, value] : values_) keep_address(value);
        for (const Scalar& scalar : what.scalars) values_[scalar.name].bytes = scalar.bytes;
        gpu.wait("filling buffers");
    }

    // Queue that all is as before the first run: outputs and workspaces poisoned, other buffers and variables restored.
    void prepare() {
        for (auto& [name, value] : values_) {
            if (value.poisoned) fill(value, POISON);
            if (value.content) copy(value, name);
        }
        module_.globals().restore(gpu_.stream);
    }

    // Queue what is timed: zeroing and launches.
    void queue() {
        for (const std::string& name : case_.plan.zero) fill(values_.at(name), 0);
        for (const Launch& launch : case_.plan.launches) start(launch);
    }

    // Compare every output with what is stored.
    Verdict verdict() const {
        Verdict whole;
        for (const Tolerance& tolerance : case_.tolerances) {
            const Buffer& buffer = find(tolerance.output);
            const bool as_itself = tolerance.exact || buffer.dtype.rfind("float", 0) != 0;
            const std::string kind = as_itself ? buffer.dtype : "float64";
            const std::size_t bytes = buffer.count() * (as_itself ? buffer.item_bytes : 8);
            const Bytes expected = read_npy(path(buffer.name + ".expected"), kind, bytes);
            const Bytes scale = tolerance.scaled ? read_npy(path(buffer.name + ".scale"), kind, bytes) : Bytes{};
            const Verdict found = compare(buffer, tolerance, fetch(buffer), expected, scale);
            whole.error = std::max(whole.error, found.error);
            whole.wrong += found.wrong;
            if (!found.words.empty()) whole.words += (whole.words.empty() ? "" : "; ") + found.words;
        }
        return whole;
    }

  private:
    // What an argument is: a number, or a buffer's address in `bytes`, with what belongs to it.
    struct Value {
        std::array<unsigned char, 8> bytes{};
        std::shared_ptr<Memory> memory;
        std::shared_ptr<Memory> content;  // of an inout buffer, as it was
        std::size_t size = 0;
        bool poisoned = false;
    };

    std::string path(const std::string& name) const { return folder_ + "/" + name + ".npy"; }

    const Buffer& find(const std::string& name) const {
        for (const Buffer& buffer : case_.buffers)
            if (buffer.name == name) return buffer;
        throw CannotRun("plans.hpp names no buffer " + name + "; export again");
    }

    void place(const Buffer& buffer) {
        const auto make = [&] { return std::make_shared<Memory>(gpu_.driver, buffer.bytes(), buffer.align, buffer.name); };
        Value value{{}, make(), nullptr, buffer.bytes(), buffer.direction == Direction::out};
        if (buffer.direction != Direction::out) {
            const Bytes content = read_npy(path(buffer.name), buffer.dtype, buffer.bytes());
            if (buffer.direction == Direction::inout) value.content = make();
            const auto& target = value.content ? value.content : value.memory;
            const CUresult code = gpu_.driver.upload(target->address, content.data(), content.size());
            gpu_.driver.check(code, "cuMemcpyHtoD of " + buffer.name);
        }
        values_[buffer.name] = value;
    }

    static void keep_address(Value& value) {
        std::memcpy(value.bytes.data(), &value.memory->address, sizeof value.memory->address);
    }

    void fill(const Value& value, unsigned char byte) const {
        gpu_.driver.check(gpu_.driver.fill8(value.memory->address, byte, value.size, gpu_.stream), "cuMemsetD8Async");
    }

    void copy(const Value& value, const std::string& name) const {
        const CUresult code =
            gpu_.driver.copy(value.memory->address, value.content->address, value.size, gpu_.stream);
        gpu_.driver.check(code, "cuMemcpyDtoDAsync of " + name);
    }

    void start(const Launch& launch) {
        std::vector<std::int32_t> numbers(launch.arguments.size());
        std::vector<void*> arguments;
        for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
            if (const auto* name = std::get_if<std::string>(&launch.arguments[i])) {
                arguments.push_back(values_.at(*name).bytes.data());
            } else {
                numbers[i] = std::get<std::int32_t>(launch.arguments[i]);
                arguments.push_back(&numbers[i]);
            }
        }
        std::vector<CUlaunchAttribute> attributes = launch_attributes();
        CUlaunchConfig config{};
        config.gridDimX = launch.grid.x, config.gridDimY = launch.grid.y, config.gridDimZ = launch.grid.z;
        config.blockDimX = launch.block.x, config.blockDimY = launch.block.y, config.blockDimZ = launch.block.z;
        config.sharedMemBytes = launch.shared_bytes;
        config.attrs = attributes.data();
        config.numAttrs = static_cast<unsigned>(attributes.size());
        const std::string what = "kernel " + launch.kernel + ", case " + case_.name;
        gpu_.launch(module_.function(launch.kernel), config, arguments.data(), what);
    }

    std::vector<CUlaunchAttribute> launch_attributes() const {
        std::vector<CUlaunchAttribute> attributes;
        if (case_.plan.cooperative) {
            attributes.emplace_back();
            attributes.back().id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            attributes.back().value.cooperative = 1;
        }
        if (case_.plan.clustered) {
            attributes.emplace_back();
            attributes.back().id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            auto& cluster = attributes.back().value.clusterDim;
            cluster.x = case_.plan.cluster.x, cluster.y = case_.plan.cluster.y, cluster.z = case_.plan.cluster.z;
        }
        return attributes;
    }

    Bytes fetch(const Buffer& buffer) const {
        Bytes content(buffer.bytes());
        const CUdeviceptr from = values_.at(buffer.name).memory->address;
        gpu_.driver.check(gpu_.driver.download(content.data(), from, content.size()), "cuMemcpyDtoH of " + buffer.name);
        return content;
    }

    const Gpu& gpu_;
    const Module& module_;
    const Case& case_;
    std::string folder_;
    std::map<std::string, Value> values_;
};

}  // namespace harness
