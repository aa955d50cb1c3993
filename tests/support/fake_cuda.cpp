// A driver without a GPU: the entry points that exported programs use, with the memory of this process as the device's.
// It runs no machine code: a few kernels of the tests are known to it by name and are computed here.
//
// FAKE_CUDA_LOG=FILE writes a line for each call that tests ask about; FAKE_CUDA=wrong makes results wrong, =fault lets
// kernels fail, =empty has no device.

#include <cuda.h>
#undef cuEventElapsedTime  // a macro for a newer symbol, which drivers of CUDA 12 lack

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int counter = 0;  // of the kernel `counted`: a __device__ variable
bool faulty = false;

bool asked(const char* what) {
    const char* mode = std::getenv("FAKE_CUDA");
    return mode && std::string(mode) == what;
}

template <class... Values>
void log(const char* format, Values... values) {
    const char* path = std::getenv("FAKE_CUDA_LOG");
    if (!path) return;
    std::FILE* file = std::fopen(path, "a");
    std::fprintf(file, format, values...);
    std::fprintf(file, "\n");
    std::fclose(file);
}

template <class T>
T argument(void** arguments, int index) {
    T value;
    std::memcpy(&value, arguments[index], sizeof value);
    return value;
}

struct Function {
    std::string name;
};

void squares(void** a) {
    const auto* x = argument<const float*>(a, 0);
    auto* y = argument<float*>(a, 1);
    for (int i = 0; i < argument<int>(a, 2); ++i) y[i] = x[i] * x[i];
    if (asked("wrong")) y[5] += 1;
}

void counted(void** a) {
    const auto* x = argument<const int*>(a, 0);
    auto* y = argument<int*>(a, 1);
    for (int i = 0; i < argument<int>(a, 2); ++i) y[i] = x[i] + counter;
    ++counter;
}

// state += scale * x; partial[block] = what the block has added
void scale_add(void** a, const CUlaunchConfig& config) {
    const auto* x = argument<const float*>(a, 0);
    auto *state = argument<double*>(a, 1), *partial = argument<double*>(a, 2);
    const int n = argument<int>(a, 3);
    const auto scale = argument<float>(a, 4);
    for (unsigned block = 0; block < config.gridDimX; ++block) {
        partial[block] = 0;
        for (unsigned t = 0; t < config.blockDimX; ++t) {
            const int i = static_cast<int>(block * config.blockDimX + t);
            if (i >= n) continue;
            state[i] += double(scale) * x[i];
            partial[block] += double(scale) * x[i];
        }
    }
}

void finish(void** a) {
    const auto* partial = argument<const double*>(a, 0);
    auto* total = argument<double*>(a, 1);
    auto* blocks = argument<int*>(a, 2);
    const int count = argument<int>(a, 3);
    total[0] = 0;
    for (int i = 0; i < count; ++i) total[0] += partial[i];
    blocks[0] += count > 0;
    if (asked("wrong")) total[0] += 1;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return asked("empty") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }

// NVRTC asks a driver that is there for tables of its own, and does without them.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetErrorName(CUresult code, const char** name) {
    *name = code == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : code == CUDA_ERROR_NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
                                               : "CUDA_ERROR_OF_THE_FAKE";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char** words) {
    *words = "words about it";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
    std::snprintf(name, length, "a GPU that is none");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; break;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 50 << 20; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *value = 32; break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
    *context = reinterpret_cast<CUcontext>(1);
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    *context = nullptr;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    log("module");
    *module = reinterpret_cast<CUmodule>(1);
    return std::memcmp(image, "\x7f" "ELF", 4) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
    *function = reinterpret_cast<CUfunction>(new Function{name});
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule, const char* name) {
    if (std::string(name) != "counter") return CUDA_ERROR_NOT_FOUND;
    *address = reinterpret_cast<CUdeviceptr>(&counter);
    *bytes = sizeof counter;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
    log("attribute %s %d=%d", reinterpret_cast<Function*>(function)->name.c_str(), int(which), value);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
    *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(512, (bytes + 511) / 512 * 512));
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
    std::free(reinterpret_cast<void*>(address));
    return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
    *address = std::calloc(1, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* host, unsigned) {
    *address = reinterpret_cast<CUdeviceptr>(host);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, std::size_t bytes, CUstream) {
    log("fill %d %zu", int(byte), bytes);
    std::memset(reinterpret_cast<void*>(to), byte, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, std::size_t words, CUstream) {
    log("flush %zu", 4 * words);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
    *stream = reinterpret_cast<CUstream>(2);
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) { return faulty ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS; }

CUresult cuEventCreate(CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(new std::chrono::steady_clock::time_point);
    return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream) {
    *reinterpret_cast<std::chrono::steady_clock::time_point*>(event) = std::chrono::steady_clock::now();
    return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
    const auto at = [](CUevent event) { return *reinterpret_cast<std::chrono::steady_clock::time_point*>(event); };
    *milliseconds = std::chrono::duration<float, std::milli>(at(end) - at(begin)).count();
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void**) {
    const std::string& name = reinterpret_cast<Function*>(function)->name;
    std::string attributes;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const CUlaunchAttribute& one = config->attrs[i];
        if (one.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && one.value.cooperative) attributes += " cooperative";
        if (one.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            const auto& size = one.value.clusterDim;
            attributes += " cluster=" + std::to_string(size.x) + "," + std::to_string(size.y) + "," + std::to_string(size.z);
        }
    }
    log("launch %s grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%p%s", name.c_str(), config->gridDimX, config->gridDimY,
        config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
        static_cast<void*>(config->hStream), attributes.c_str());
    if (name == "hold_stream") return CUDA_SUCCESS;
    faulty = asked("fault");
    if (name == "squares") squares(arguments);
    else if (name == "counted") counted(arguments);
    else if (name == "scale_add") scale_add(arguments, *config);
    else if (name == "finish") finish(arguments);
    else return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

}  // extern "C"
