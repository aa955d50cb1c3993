// The memory that a kernel may touch: buffers between unmapped guards, shared memory, and the module's own globals.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuda_host {

enum class Space : std::uint8_t { global, shared };

struct Cell;

struct Region {
    std::uintptr_t low, high;   // the bytes that belong to it
    std::uintptr_t from, until; // the address range that is taken to mean it, guards included
    Space space;
    bool read_only, poisoned;   // poisoned: reading what nobody wrote is a fault
    bool bytewise;              // the checker keeps a cell per byte instead of one per word
    std::size_t cells_count;
    Cell* cells;
    char name[64];
};

extern Region regions[];
extern unsigned regions_count;
constexpr unsigned most_regions = 256;

Region& add_region(const char* name, Space space, std::uintptr_t low, std::uintptr_t high);
// The region that `address` belongs to, or whose guard it hit; null when it is nowhere near one.
Region* find_region(std::uintptr_t address);

// NaN in every floating-point format and no plausible integer, different for every seed: 0xff81 … 0xffff in each half word.
void poison(void* memory, std::size_t bytes, std::uint64_t seed);

struct Allocation {
    char* data;
    std::size_t bytes;
    char *page, *page_end;  // the mapped pages
};

// Allocates `bytes` that end at an unmapped page, as nearly as `align` allows. With `tight` the address is a multiple of
// `align` and of no larger power of two.
Allocation allocate(const char* name, std::size_t bytes, std::size_t align, bool tight);
void make_read_only(const Allocation& allocation);
// Slack between a buffer and its pages' ends carries a pattern; false when it was written over.
bool slack_intact(const Allocation& allocation, long& offset);

void open_dynamic_shared(std::size_t bytes);  // exactly these bytes of `dynamic_shared` are accessible, to the page
bool dynamic_shared_slack_intact(long& offset);

struct Span {
    char* begin;
    std::size_t bytes;
};
Span static_shared();                // the executable's thread-local segment
void poison_shared(std::uint64_t seed);
void save_globals();                 // the candidate's writable variables, before anything ran
void restore_globals();

}  // namespace cuda_host
