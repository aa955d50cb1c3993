// One GPU: its figures, its stream, and a clock that the speed of this program has no part in.
#pragma once

#include <memory>
#include <string>

#include "driver.hpp"

namespace harness {

// Device memory whose address is a multiple of `align`.
class Memory {
  public:
    Memory(const Driver& driver, std::size_t bytes, std::size_t align, const std::string& what) : driver_(driver) {
        driver.check(driver.allocate(&base_, bytes + align), "cuMemAlloc of " + std::to_string(bytes) + " bytes for " + what);
        address = (base_ + align - 1) / align * align;
    }
    ~Memory() { driver_.release(base_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    CUdeviceptr address = 0;

  private:
    const Driver& driver_;
    CUdeviceptr base_ = 0;
};

class Gpu {
  public:
    Gpu(const Driver& driver, int ordinal) : driver(driver) {
        setenv("CUDA_MODULE_LOADING", "EAGER", 0);  // a kernel that is loaded behind the blocker would wait for it
        driver.check(driver.init(0), "cuInit");
        const std::string what = "GPU " + std::to_string(ordinal);
        driver.check(driver.device_get(&device_, ordinal), "cuDeviceGet of " + what);
        char text[128] = {};
        driver.check(driver.device_name(text, sizeof text - 1, device_), "cuDeviceGetName of " + what);
        name = text;
        const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        // From 9.0 on, the target with an `a` has all of the chip's instructions.
        arch = "sm_" + std::to_string(major) + std::to_string(minor) + (major >= 9 ? "a" : "");
        num_sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
        CUcontext context;
        driver.check(driver.context_retain(&context, device_), "cuDevicePrimaryCtxRetain of " + what);
        driver.check(driver.context_use(context), "cuCtxSetCurrent");
        driver.check(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }

    void launch(CUfunction function, CUlaunchConfig config, void** arguments, const std::string& what) const {
        config.hStream = stream;
        driver.check(driver.launch(&config, function, arguments, nullptr), "cuLaunchKernelEx of " + what);
    }

    void wait(const std::string& what) const { driver.check(driver.stream_wait(stream), what); }

    const Driver& driver;
    std::string name, arch;
    int num_sms = 0, l2_bytes = 0;
    CUstream stream = nullptr;

  private:
    int attribute(CUdevice_attribute which) const { return driver.attribute(which, device_); }

    CUdevice device_ = 0;
};

// A kernel of one thread that holds the stream until the host lets go, half a second at most; flag[1] tells that it
// was too long.
constexpr const char* HOLD_NAME = "hold_stream";
constexpr const char* HOLD_SOURCE = R"(
extern "C" __global__ void hold_stream(volatile unsigned* flag, unsigned long long limit_ns) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    while (flag[0] == 0) {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
        if (now - begin > limit_ns) {
            flag[1] = 1;
            __threadfence_system();
            return;
        }
    }
}
)";

class Clock {
  public:
    // Args: `image` is HOLD_SOURCE, compiled for this GPU.
    Clock(const Gpu& gpu, const std::string& image) : gpu_(gpu) {
        const Driver& driver = gpu.driver;
        CUmodule module;
        driver.check(driver.module_load(&module, image.data()), "cuModuleLoadData of the blocking kernel");
        driver.check(driver.module_function(&hold_, module, HOLD_NAME), "cuModuleGetFunction of the blocking kernel");
        driver.check(driver.event_create(&begin_, CU_EVENT_DEFAULT), "cuEventCreate");
        driver.check(driver.event_create(&end_, CU_EVENT_DEFAULT), "cuEventCreate");
        void* flag = nullptr;
        driver.check(driver.host_allocate(&flag, 8, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
        driver.check(driver.host_pointer(&flag_at_, flag, 0), "cuMemHostGetDevicePointer");
        flag_ = static_cast<volatile unsigned*>(flag);
    }

    // Return what the GPU takes for what `queue` puts on the stream, in microseconds. All of it is queued before the
    // GPU may begin. `held` becomes false where the stream could not be held so long.
    template <class Queue>
    double microseconds(Queue queue, bool& held) {
        const Driver& driver = gpu_.driver;
        flag_[0] = held ? 0 : 1;
        flag_[1] = 0;
        try {
            hold();
            driver.check(driver.event_record(begin_, gpu_.stream), "cuEventRecord");
            queue();
            driver.check(driver.event_record(end_, gpu_.stream), "cuEventRecord");
        } catch (...) {
            flag_[0] = 1;
            throw;
        }
        flag_[0] = 1;
        driver.check(driver.event_wait(end_), "cuEventSynchronize");
        held = held && flag_[1] == 0;
        float milliseconds = 0;
        driver.check(driver.event_elapsed(&milliseconds, begin_, end_), "cuEventElapsedTime");
        return 1e3 * milliseconds;
    }

  private:
    void hold() {
        unsigned long long limit_ns = 500000000;
        void* arguments[] = {&flag_at_, &limit_ns};
        CUlaunchConfig config{};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        gpu_.launch(hold_, config, arguments, "the blocking kernel");
    }

    const Gpu& gpu_;
    CUfunction hold_ = nullptr;
    CUevent begin_ = nullptr, end_ = nullptr;
    CUdeviceptr flag_at_ = 0;
    volatile unsigned* flag_ = nullptr;
};

}  // namespace harness
