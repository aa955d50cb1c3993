// The program that every kernel is linked into: reads one job, runs its plan once or many times, leaves the buffers'
// bytes in files, and says what it found. It holds no expected value and judges nothing.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "checker.hpp"
#include "faults.hpp"
#include "fiber.hpp"
#include "job.hpp"
#include "memory.hpp"
#include "report.hpp"
#include "scheduler.hpp"

namespace cuda_host {
namespace {

char* flush_memory;
unsigned most_shared;  // dynamic shared bytes of the launch that has most

[[noreturn]] void system_failure(const char* what, const char* name) {
    send("finding\tfault\t0\t0\t0\t0\t1\t%s %s\n", what, name);
    end("failed");
}

const char* map_file(const char* name, std::size_t bytes) {
    if (!bytes) return "";
    const int file = open(name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) || static_cast<std::size_t>(status.st_size) != bytes)
        system_failure("cannot read a buffer of the expected size from", name);
    void* content = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (content == MAP_FAILED) system_failure("cannot map", name);
    close(file);
    return static_cast<const char*>(content);
}

void open_buffer(Buffer& buffer) {
    buffer.memory = allocate(buffer.name, buffer.bytes, buffer.align, job.tight);
    buffer.pointer = buffer.memory.data;
    buffer.region = regions_count - 1;
    Region& region = regions[buffer.region];
    region.poisoned = !buffer.file[0];
    if (buffer.file[0]) buffer.content = map_file(buffer.file, buffer.bytes);
    if (buffer.direction != Direction::in) return;
    if (buffer.content) std::memcpy(buffer.memory.data, buffer.content, buffer.bytes);
    make_read_only(buffer.memory);
    region.read_only = true;
}

const char* mismatch(const ParameterType& parameter, const Argument& argument, char (&text)[200]) {
    if (argument.buffer) {
        if (parameter.kind == ParameterKind::pointer) return nullptr;
        format(text, sizeof text, "the launch passes the buffer %s, and the kernel takes no pointer there", argument.buffer->name);
        return text;
    }
    const Scalar& scalar = *argument.scalar;
    const char kind = parameter.kind == ParameterKind::integer    ? 'i'
                      : parameter.kind == ParameterKind::floating ? 'f'
                      : parameter.kind == ParameterKind::bytes    ? 'r'
                                                                  : 'p';
    if (kind == scalar.kind && parameter.size == scalar.bytes) return nullptr;
    static const char* const names[] = {"a pointer", "an integer", "a floating-point number", "a structure"};
    format(text, sizeof text, "the launch passes the %u-byte %s %s, and the kernel takes %s of %u bytes there", scalar.bytes,
           scalar.kind == 'i' ? "integer" : scalar.kind == 'f' ? "floating-point number" : "value", scalar.name,
           names[static_cast<int>(parameter.kind)], parameter.size);
    return text;
}

void check_arguments(const JobLaunch& launch) {
    const Kernel& kernel = kernels[launch.kernel];
    if (launch.count != kernel.count) {
        note(Kind::bad_launch, 0, 0, "kernel %s takes %u arguments, and the launch passes %u", kernel.name, kernel.count, launch.count);
        end("failed");
    }
    for (unsigned i = 0; i < launch.count; ++i) {
        char text[200];
        if (!mismatch(kernel.parameters[i], launch.arguments[i], text)) continue;
        note(Kind::bad_launch, 0, 0, "kernel %s, argument %u: %s", kernel.name, i + 1, text);
        end("failed");
    }
}

// Everything that a run starts from and that an earlier run may have changed.
void prepare_run(std::uint64_t run) {
    restore_globals();
    for (unsigned i = 0; i < job.buffers_count; ++i) {
        const Buffer& buffer = job.buffers[i];
        if (buffer.direction == Direction::in) continue;
        if (buffer.content) std::memcpy(buffer.memory.data, buffer.content, buffer.bytes);
        else poison(buffer.memory.data, buffer.bytes, job.seed + run);
    }
    checker_begin_run();
    open_dynamic_shared(most_shared);
    poison_shared(job.seed + run);
    forget_local_memory(job.seed + run);
    if (job.flush) std::memset(flush_memory, static_cast<int>(run & 0xff), job.flush);
}

bool run_plan() {
    for (unsigned i = 0; i < job.buffers_count; ++i) {
        const Buffer& buffer = job.buffers[i];
        if (!buffer.zero) continue;
        std::memset(buffer.memory.data, 0, buffer.bytes);
        checker_zeroed(regions[buffer.region]);
    }
    for (unsigned i = 0; i < job.launches_count; ++i) {
        const JobLaunch& launch = job.launches[i];
        void* arguments[most_arguments];
        for (unsigned k = 0; k < launch.count; ++k) {
            const Argument& argument = launch.arguments[k];
            arguments[k] = argument.buffer ? const_cast<void**>(&argument.buffer->pointer)
                                           : static_cast<void*>(const_cast<unsigned char*>(argument.scalar->value));
        }
        if (i == 0 || launch.shared_bytes != job.launches[i - 1].shared_bytes) open_dynamic_shared(launch.shared_bytes);
        if (!run_launch(kernels[launch.kernel], arguments, {launch.grid, launch.block, launch.shared_bytes, job.order})) return false;
    }
    return true;
}

void check_slack() {
    if (any_fault_noted()) return;  // the checker has said more than this can
    long offset = 0;
    for (unsigned i = 0; i < job.buffers_count; ++i)
        if (!slack_intact(job.buffers[i].memory, offset))
            note(Kind::out_of_bounds, 0, 0, "some thread has written byte %ld of %s, which has %zu bytes", offset,
                 job.buffers[i].name, job.buffers[i].bytes);
    if (!dynamic_shared_slack_intact(offset))
        note(Kind::out_of_bounds, 0, 0, "some thread has written byte %ld of the dynamic shared memory, which has %u bytes", offset,
             dynamic_shared_bytes);
}

std::uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

void run_once(std::uint64_t run) {
    prepare_run(run);
    if (!run_plan()) end("failed");
}

void run_timed(std::uint64_t run) {
    prepare_run(run);
    send("ready\n");
    await_word();
    const std::uint64_t begin = now_ns();
    const bool finished = run_plan();
    const std::uint64_t ns = now_ns() - begin;
    if (!finished) end("failed");
    send("sample\t%lu\n", static_cast<unsigned long>(ns));
}

void leave_results() {
    for (unsigned i = 0; i < job.buffers_count; ++i) {
        const Buffer& buffer = job.buffers[i];
        char name[80];
        format(name, sizeof name, "%s.out", buffer.name);
        const int file = open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
        if (file < 0) system_failure("cannot open", name);
        for (std::size_t done = 0; done < buffer.bytes;) {
            const ssize_t written = write(file, buffer.memory.data + done, buffer.bytes - done);
            if (written <= 0) system_failure("cannot write", name);
            done += static_cast<std::size_t>(written);
        }
        close(file);
    }
}

void open_all() {
    save_globals();
    for (unsigned i = 0; i < job.buffers_count; ++i) open_buffer(job.buffers[i]);
    for (unsigned i = 0; i < job.launches_count; ++i)
        if (job.launches[i].shared_bytes > most_shared) most_shared = job.launches[i].shared_bytes;
    open_dynamic_shared(most_shared);
    checker_open();
    if (job.flush) flush_memory = allocate("the cache flush", job.flush, 64, false).data;
    for (unsigned i = 0; i < job.launches_count; ++i) check_arguments(job.launches[i]);
}

int run_job() {
    catch_faults();
    read_job();
    open_all();
    start_clock(job.time_limit_ms);
    std::uint64_t run = 0;
    for (const std::uint64_t untimed = job.timed ? job.warmup : 1; run < untimed; ++run) run_once(run);
    // How many runs are timed stays with the parent: a kernel that knew the last would work on that one alone.
    if (job.timed) {
        do run_timed(run++);
        while (await_word() == 'm');
    }
    check_slack();
    leave_results();
    end("done");
}

}  // namespace
}  // namespace cuda_host

int main() { return cuda_host::run_job(); }
