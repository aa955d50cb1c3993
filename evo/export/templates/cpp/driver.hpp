// CUDA's driver API, loaded when the program runs. Every failure says which call, for what, and what to do.
#pragma once

#include <cuda.h>

#include <string>

#include "errors.hpp"
#include "library.hpp"

namespace harness {

class Driver {
  public:
    Driver() : library_({"libcuda.so.1", "libcuda.so"},
                        "no NVIDIA driver: this program needs an NVIDIA GPU and its driver (see `nvidia-smi`)") {
        // Symbols with their versions, as drivers since CUDA 12.0 have them, whatever the headers call them.
        library_.find(init, "cuInit");
        library_.find(error_name, "cuGetErrorName");
        library_.find(error_string, "cuGetErrorString");
        library_.find(device_get, "cuDeviceGet");
        library_.find(device_name, "cuDeviceGetName");
        library_.find(device_attribute, "cuDeviceGetAttribute");
        library_.find(context_retain, "cuDevicePrimaryCtxRetain");
        library_.find(context_use, "cuCtxSetCurrent");
        library_.find(module_load, "cuModuleLoadData");
        library_.find(module_unload, "cuModuleUnload");
        library_.find(module_function, "cuModuleGetFunction");
        library_.find(module_global, "cuModuleGetGlobal_v2");
        library_.find(function_attribute, "cuFuncSetAttribute");
        library_.find(allocate, "cuMemAlloc_v2");
        library_.find(release, "cuMemFree_v2");
        library_.find(host_allocate, "cuMemHostAlloc");
        library_.find(host_pointer, "cuMemHostGetDevicePointer_v2");
        library_.find(upload, "cuMemcpyHtoD_v2");
        library_.find(download, "cuMemcpyDtoH_v2");
        library_.find(copy, "cuMemcpyDtoDAsync_v2");
        library_.find(fill8, "cuMemsetD8Async");
        library_.find(fill32, "cuMemsetD32Async");
        library_.find(stream_create, "cuStreamCreate");
        library_.find(stream_wait, "cuStreamSynchronize");
        library_.find(event_create, "cuEventCreate");
        library_.find(event_record, "cuEventRecord");
        library_.find(event_wait, "cuEventSynchronize");
        library_.find(event_elapsed, "cuEventElapsedTime");
        library_.find(launch, "cuLaunchKernelEx");
    }

    // Throw unless a call went well; `what` names the call and what it was for.
    void check(CUresult code, const std::string& what) const {
        if (code == CUDA_SUCCESS) return;
        const char *name = nullptr, *words = nullptr;
        error_name(code, &name);
        error_string(code, &words);
        const std::string text = what + ": " + (name ? name : "unknown error") + " (" + std::to_string(code) + ")" +
                                 (words ? std::string(", ") + words : "") + ". " + advice(code);
        if (is_fault(code)) throw KernelFault(text);
        throw CannotRun(text);
    }

    int attribute(CUdevice_attribute which, CUdevice device) const {
        int value = 0;
        check(device_attribute(&value, which, device), "cuDeviceGetAttribute " + std::to_string(which));
        return value;
    }

    CUresult (*init)(unsigned);
    CUresult (*error_name)(CUresult, const char**);
    CUresult (*error_string)(CUresult, const char**);
    CUresult (*device_get)(CUdevice*, int);
    CUresult (*device_name)(char*, int, CUdevice);
    CUresult (*device_attribute)(int*, CUdevice_attribute, CUdevice);
    CUresult (*context_retain)(CUcontext*, CUdevice);
    CUresult (*context_use)(CUcontext);
    CUresult (*module_load)(CUmodule*, const void*);
    CUresult (*module_unload)(CUmodule);
    CUresult (*module_function)(CUfunction*, CUmodule, const char*);
    CUresult (*module_global)(CUdeviceptr*, std::size_t*, CUmodule, const char*);
    CUresult (*function_attribute)(CUfunction, CUfunction_attribute, int);
    CUresult (*allocate)(CUdeviceptr*, std::size_t);
    CUresult (*release)(CUdeviceptr);
    CUresult (*host_allocate)(void**, std::size_t, unsigned);
    CUresult (*host_pointer)(CUdeviceptr*, void*, unsigned);
    CUresult (*upload)(CUdeviceptr, const void*, std::size_t);
    CUresult (*download)(void*, CUdeviceptr, std::size_t);
    CUresult (*copy)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
    CUresult (*fill8)(CUdeviceptr, unsigned char, std::size_t, CUstream);
    CUresult (*fill32)(CUdeviceptr, unsigned, std::size_t, CUstream);
    CUresult (*stream_create)(CUstream*, unsigned);
    CUresult (*stream_wait)(CUstream);
    CUresult (*event_create)(CUevent*, unsigned);
    CUresult (*event_record)(CUevent, CUstream);
    CUresult (*event_wait)(CUevent);
    CUresult (*event_elapsed)(float*, CUevent, CUevent);
    CUresult (*launch)(const CUlaunchConfig*, CUfunction, void**, void**);

  private:
    static bool is_fault(CUresult code) {
        switch (code) {
            case CUDA_ERROR_ILLEGAL_ADDRESS:
            case CUDA_ERROR_MISALIGNED_ADDRESS:
            case CUDA_ERROR_INVALID_ADDRESS_SPACE:
            case CUDA_ERROR_INVALID_PC:
            case CUDA_ERROR_ILLEGAL_INSTRUCTION:
            case CUDA_ERROR_HARDWARE_STACK_ERROR:
            case CUDA_ERROR_LAUNCH_FAILED:
            case CUDA_ERROR_LAUNCH_TIMEOUT:
            case CUDA_ERROR_ASSERT:
                return true;
            default:
                return false;
        }
    }

    static std::string advice(CUresult code) {
        if (is_fault(code)) return "The kernel is at fault; `compute-sanitizer` finds where.";
        switch (code) {
            case CUDA_ERROR_NO_DEVICE:
                return "There is no GPU that this process may use; see `nvidia-smi` and CUDA_VISIBLE_DEVICES.";
            case CUDA_ERROR_INVALID_DEVICE:
                return "There is no GPU of this number; see `nvidia-smi -L` and give another --device.";
            case CUDA_ERROR_OUT_OF_MEMORY:
                return "See with `nvidia-smi` what else uses the GPU's memory, or run one --case alone.";
            case CUDA_ERROR_NO_BINARY_FOR_GPU:
            case CUDA_ERROR_INVALID_IMAGE:
            case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
                return "The program is for another GPU or a newer driver; leave --arch out, or name an older NVRTC.";
            case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
            case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
            case CUDA_ERROR_INVALID_CLUSTER_SIZE:
            case CUDA_ERROR_INVALID_VALUE:
                return "This GPU cannot launch what plans.hpp says; export again from a run on such a GPU.";
            case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
            case CUDA_ERROR_SYSTEM_NOT_READY:
            case CUDA_ERROR_UNKNOWN:
                return "The driver is not ready; see `nvidia-smi` and `dmesg`.";
            default:
                return "The CUDA Driver API reference explains this error.";
        }
    }

    Library library_;
};

}  // namespace harness
