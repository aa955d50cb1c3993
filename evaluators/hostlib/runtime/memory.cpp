#include "memory.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "../device/runtime.hpp"
#include "fiber.hpp"
#include "report.hpp"

// Defined by the objects that the linker puts before and behind the candidate's: what lies between is the candidate's.
extern "C" {
extern char cuda_host_data_begin[], cuda_host_data_end[], cuda_host_bss_begin[], cuda_host_bss_end[];
}

namespace cuda_host {

alignas(page_bytes) DynamicShared dynamic_shared;

Region regions[most_regions];
unsigned regions_count;

namespace {

constexpr std::size_t guard_bytes = 64u << 20;  // a stray index of up to 16 million floats is still told by name
constexpr unsigned char slack_pattern = 0xfb;

std::size_t dynamic_bytes;
char *saved_data, *saved_bss;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

char* reserve(std::size_t bytes, int protection) {
    void* memory = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        send("finding\tfault\t0\t0\t0\t0\t1\tthe job's buffers do not fit into the memory limit\n");
        end("failed");
    }
    return static_cast<char*>(memory);
}

int find_tls(dl_phdr_info* info, size_t, void* out) {
    auto* span = static_cast<Span*>(out);
    for (int i = 0; i < info->dlpi_phnum; ++i)
        if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data)
            *span = {static_cast<char*>(info->dlpi_tls_data), info->dlpi_phdr[i].p_memsz};
    return 1;  // the first entry is the executable
}

char* copy_of(const char* begin, const char* end) {
    const std::size_t bytes = static_cast<std::size_t>(end - begin);
    if (!bytes) return nullptr;
    char* copy = reserve(whole_pages(bytes), PROT_READ | PROT_WRITE);
    std::memcpy(copy, begin, bytes);
    mprotect(copy, whole_pages(bytes), PROT_READ);
    return copy;
}

bool has_pattern(const char* from, const char* to, const char*& wrong) {
    for (const char* at = from; at < to; ++at)
        if (static_cast<unsigned char>(*at) != slack_pattern) {
            wrong = at;
            return false;
        }
    return true;
}

}  // namespace

Region& add_region(const char* name, Space space, std::uintptr_t low, std::uintptr_t high) {
    if (regions_count == most_regions) {
        send("finding\tfault\t0\t0\t0\t0\t1\tmore than %u buffers and variables\n", most_regions);
        end("failed");
    }
    Region& region = regions[regions_count++];
    region = {low, high, low, high, space, false, false, false, 0, nullptr, ""};
    std::strncpy(region.name, name, sizeof region.name - 1);
    return region;
}

Region* find_region(std::uintptr_t address) {
    static Region* last = nullptr;
    if (last && address >= last->from && address < last->until) return last;
    for (unsigned i = 0; i < regions_count; ++i)
        if (address >= regions[i].from && address < regions[i].until) return last = &regions[i];
    return nullptr;
}

void poison(void* memory, std::size_t bytes, std::uint64_t seed) {
    const std::uint64_t half = 0xff80 | (1 + seed * 0x9e3779b97f4a7c15ull % 127);
    const std::uint64_t word = half * 0x0001000100010001ull;
    char* out = static_cast<char*>(memory);
    std::size_t i = 0;
    for (; i + 8 <= bytes; i += 8) std::memcpy(out + i, &word, 8);
    std::memcpy(out + i, &word, bytes - i);
}

Allocation allocate(const char* name, std::size_t bytes, std::size_t align, bool tight) {
    if (align < 1) align = 1;
    const std::size_t step = tight ? 2 * align : align;
    const std::size_t pages = whole_pages(bytes + step);
    char* window = reserve(pages + 2 * guard_bytes, PROT_NONE);
    char *page = window + guard_bytes, *page_end = page + pages;
    mprotect(page, pages, PROT_READ | PROT_WRITE);
    auto address = reinterpret_cast<std::uintptr_t>(page_end - bytes) / step * step;
    if (tight) {
        if (address + align + bytes <= reinterpret_cast<std::uintptr_t>(page_end)) address += align;
        else address -= align;
    }
    char* data = reinterpret_cast<char*>(address);
    std::memset(page, slack_pattern, static_cast<std::size_t>(data - page));
    std::memset(data + bytes, slack_pattern, static_cast<std::size_t>(page_end - data) - bytes);
    Region& region = add_region(name, Space::global, address, address + bytes);
    region.from = reinterpret_cast<std::uintptr_t>(window);
    region.until = reinterpret_cast<std::uintptr_t>(page_end + guard_bytes);
    return {data, bytes, page, page_end};
}

void make_read_only(const Allocation& a) { mprotect(a.page, static_cast<std::size_t>(a.page_end - a.page), PROT_READ); }

bool slack_intact(const Allocation& a, long& offset) {
    const char* wrong = nullptr;
    if (has_pattern(a.page, a.data, wrong) && has_pattern(a.data + a.bytes, a.page_end, wrong)) return true;
    offset = wrong - a.data;
    return false;
}

void open_dynamic_shared(std::size_t bytes) {
    char* first = dynamic_shared.memory;
    const std::size_t open = whole_pages(bytes);
    dynamic_bytes = bytes;
    mprotect(&dynamic_shared, sizeof dynamic_shared, PROT_NONE);
    if (open) mprotect(first, open, PROT_READ | PROT_WRITE);
    if (open > bytes) std::memset(first + bytes, slack_pattern, open - bytes);
    for (unsigned i = 0; i < regions_count; ++i)
        if (!std::strcmp(regions[i].name, "dynamic shared memory")) {
            regions[i].high = regions[i].low + bytes;
            return;
        }
    const auto low = reinterpret_cast<std::uintptr_t>(first);
    Region& region = add_region("dynamic shared memory", Space::shared, low, low + bytes);
    region.from = low - page_bytes;
    region.until = low + max_dynamic_shared + page_bytes;
    region.poisoned = true;
}

bool dynamic_shared_slack_intact(long& offset) {
    const char* first = dynamic_shared.memory;
    const char* wrong = nullptr;
    if (has_pattern(first + dynamic_bytes, first + whole_pages(dynamic_bytes), wrong)) return true;
    offset = wrong - first;
    return false;
}

Span static_shared() {
    static Span span{nullptr, 0};
    static bool known;
    if (!known) dl_iterate_phdr(find_tls, &span);
    known = true;
    return span;
}

void poison_shared(std::uint64_t seed) {
    const Span span = static_shared();
    poison(span.begin, span.bytes, seed);
    poison(dynamic_shared.memory, dynamic_bytes, seed);
}

void save_globals() {
    saved_data = copy_of(cuda_host_data_begin, cuda_host_data_end);
    saved_bss = copy_of(cuda_host_bss_begin, cuda_host_bss_end);
}

void restore_globals() {
    if (saved_data) std::memcpy(cuda_host_data_begin, saved_data, cuda_host_data_end - cuda_host_data_begin);
    if (saved_bss) std::memcpy(cuda_host_bss_begin, saved_bss, cuda_host_bss_end - cuda_host_bss_begin);
}

}  // namespace cuda_host
