#include "job.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "../device/kernels.hpp"
#include "report.hpp"

namespace cuda_host {

Job job;

namespace {

char input[1 << 16];
std::size_t filled, at;

[[noreturn]] void malformed() { _exit(72); }

int next_byte() {
    if (at == filled) {
        const ssize_t got = read(STDIN_FILENO, input, sizeof input);
        if (got <= 0) return -1;
        filled = static_cast<std::size_t>(got);
        at = 0;
    }
    return static_cast<unsigned char>(input[at++]);
}

// The next word, or "" at the end of the input. Words are separated by single blanks or newlines.
const char* word() {
    static char text[512];
    std::size_t length = 0;
    for (int c = next_byte(); c > ' '; c = next_byte()) {
        if (length + 1 == sizeof text) malformed();
        text[length++] = static_cast<char>(c);
    }
    text[length] = 0;
    return text;
}

bool is(const char* a, const char* b) { return !std::strcmp(a, b); }

std::uint64_t number() {
    char* rest;
    const std::uint64_t value = std::strtoull(word(), &rest, 10);
    if (*rest) malformed();
    return value;
}

void copy_word(char (&out)[64]) {
    const char* text = word();
    if (std::strlen(text) >= sizeof out) malformed();
    std::strcpy(out, text);
}

void read_buffer() {
    if (job.buffers_count == most_buffers) malformed();
    Buffer& buffer = job.buffers[job.buffers_count++];
    copy_word(buffer.name);
    buffer.bytes = number();
    buffer.align = number();
    const char* direction = word();
    buffer.direction = is(direction, "in") ? Direction::in : is(direction, "out") ? Direction::out : Direction::inout;
    copy_word(buffer.file);
    if (is(buffer.file, "-")) buffer.file[0] = 0;
}

unsigned hex_digit(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

void read_scalar() {
    if (job.scalars_count == most_scalars) malformed();
    Scalar& scalar = job.scalars[job.scalars_count++];
    copy_word(scalar.name);
    scalar.kind = word()[0];
    const char* hex = word();
    for (; hex[0] && hex[1]; hex += 2) {
        if (scalar.bytes == sizeof scalar.value) malformed();
        scalar.value[scalar.bytes++] = static_cast<unsigned char>(hex_digit(hex[0]) << 4 | hex_digit(hex[1]));
    }
}

void read_symbol() {
    char name[64];
    copy_word(name);
    const bool shared = is(word(), "shared");
    std::uintptr_t low = number();
    const std::size_t bytes = number();
    if (shared) low += reinterpret_cast<std::uintptr_t>(static_shared().begin);
    add_region(name, shared ? Space::shared : Space::global, low, low + bytes).poisoned = shared;
}

template <class T, unsigned N>
T* find(T (&items)[N], unsigned count, const char* name) {
    for (unsigned i = 0; i < count; ++i)
        if (is(items[i].name, name)) return &items[i];
    return nullptr;
}

dim3 read_shape() {
    const unsigned x = static_cast<unsigned>(number()), y = static_cast<unsigned>(number());
    return {x, y, static_cast<unsigned>(number())};
}

unsigned kernel_number(const char* name) {
    for (unsigned i = 0; kernels[i].name; ++i)
        if (is(kernels[i].name, name)) return i;
    note(Kind::bad_launch, 0, 0, "the program has no kernel named %s", name);
    end("failed");
}

void read_launch() {
    if (job.launches_count == most_launches) malformed();
    JobLaunch& launch = job.launches[job.launches_count++];
    launch.kernel = kernel_number(word());
    launch.grid = read_shape();
    launch.block = read_shape();
    launch.shared_bytes = static_cast<unsigned>(number());
    launch.count = static_cast<unsigned>(number());
    if (launch.count > most_arguments) malformed();
    for (unsigned i = 0; i < launch.count; ++i) {
        if (!is(word(), "argument")) malformed();
        const char* name = word();
        Argument& argument = launch.arguments[i];
        argument = {find(job.buffers, job.buffers_count, name), find(job.scalars, job.scalars_count, name)};
        if (!argument.buffer && !argument.scalar) malformed();
    }
}

void read_zero() {
    Buffer* buffer = find(job.buffers, job.buffers_count, word());
    if (!buffer) malformed();
    buffer->zero = true;
}

}  // namespace

void read_job() {
    for (;;) {
        const char* key = word();
        if (is(key, "go")) return;
        if (is(key, "seed")) job.seed = number();
        else if (is(key, "order")) job.order = number();
        else if (is(key, "time_limit_ms")) job.time_limit_ms = number();
        else if (is(key, "warmup")) job.warmup = number();
        else if (is(key, "timed")) job.timed = number() != 0;
        else if (is(key, "flush")) job.flush = number();
        else if (is(key, "tight")) job.tight = number() != 0;
        else if (is(key, "buffer")) read_buffer();
        else if (is(key, "scalar")) read_scalar();
        else if (is(key, "symbol")) read_symbol();
        else if (is(key, "zero")) read_zero();
        else if (is(key, "launch")) read_launch();
        else malformed();
    }
}

char await_word() {
    const int byte = next_byte();
    if (byte < 0) _exit(73);
    return static_cast<char>(byte);
}

}  // namespace cuda_host
