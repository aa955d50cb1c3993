// The checker: every load and store of the candidate comes here (hooks.cpp), and a shadow cell per word remembers the
// last writer and the last reader. A conflict is judged by what orders the two threads (a barrier, a __syncwarp, a
// fence and an atomic), never by the order in which they happened to run, so a race is found on every schedule.
#include "checker.hpp"

#include <sys/mman.h>

#include <cstring>

#include "access.hpp"
#include "memory.hpp"
#include "report.hpp"
#include "scheduler.hpp"

namespace cuda_host {

std::uintptr_t last_access_pc;

// Who touched a word. Readers of one epoch are folded together: `several_lanes` of one warp, or `several_warps`.
struct Toucher {
    std::uint32_t epoch, block, pc;
    std::uint16_t thread, syncs;
    bool atomic, is_volatile;
};

struct Cell {
    Toucher writer, reader;
    bool written;  // since the buffers were handed over
};

namespace {

constexpr std::uint16_t several_warps = 0xffff, several_lanes = 0x8000;

std::uint32_t block_epoch, launch_block;
bool acquired;                  // this block has read a flag or counter atomically
bool fenced[max_threads];
std::uint32_t fence_epoch;      // of the block's first fence; 0 before
// Blocks of this launch that published their writes: by a fence and an atomic behind it.
constexpr std::uint32_t most_releases = 1u << 20;
bool* released;

// A second, equal value into the same word by another thread is harmless, so a write is judged after it happened.
struct Pending {
    std::uintptr_t address;
    unsigned size;
    unsigned char before[16];
    std::uintptr_t pc, other_pc;
    Kind kind;
    char text[400];
} pending;
bool is_pending;


Cell* new_cells(std::size_t count) {
    void* memory = mmap(nullptr, count * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        send("finding\tfault\t0\t0\t0\t0\t1\tthe checker's notes do not fit into the memory limit\n");
        end("failed");
    }
    return static_cast<Cell*>(memory);
}

// The first access that is no whole word: from now on a cell per byte, each with its word's history.
void refine(Region& region) {
    const std::size_t words = region.cells_count;
    Cell* fine = new_cells(words * 4);
    for (std::size_t i = 0; i < words * 4; ++i) fine[i] = region.cells[i / 4];
    munmap(region.cells, words * sizeof(Cell));
    region.cells = fine;
    region.cells_count = words * 4;
    region.bytewise = true;
}

void flush_pending() {
    is_pending = false;
    if (std::memcmp(reinterpret_cast<void*>(pending.address), pending.before, pending.size))
        note(pending.kind, Place(pending.pc), Place(pending.other_pc), "%s", pending.text);
}

enum class Order { ordered, unordered, unordered_blocks };

Order order_of(const Region& region, const Toucher& earlier, const Thread& me) {
    if (!earlier.epoch) return Order::ordered;
    if (region.space == Space::global && earlier.block != block.serial) {
        if (earlier.block < launch_block) return Order::ordered;
        const std::uint32_t number = earlier.block - launch_block;
        return acquired && number < most_releases && released[number] ? Order::ordered : Order::unordered_blocks;
    }
    if (earlier.epoch != block.epoch) return Order::ordered;
    if (earlier.thread == several_warps) return Order::unordered;
    const unsigned warp = me.linear / warp_size;
    const bool folded = earlier.thread & several_lanes;
    if (!folded && earlier.thread == me.linear) return Order::ordered;
    const unsigned earlier_warp = folded ? earlier.thread & 31u : earlier.thread / warp_size;
    const bool synced = earlier_warp == warp && earlier.syncs != static_cast<std::uint16_t>(me.warp->syncs);
    return synced ? Order::ordered : Order::unordered;
}

const char* verb(Touch touch) {
    return touch == Touch::read ? "reads" : touch == Touch::write ? "writes" : "updates atomically";
}

void describe(char* out, std::size_t size, const Region& region, std::uintptr_t address, Touch touch, const Toucher& earlier,
              const char* did, Order order) {
    char who[64];
    if (earlier.thread == several_warps) format(who, sizeof who, "threads of several warps");
    else if (earlier.thread & several_lanes) format(who, sizeof who, "several threads of warp %u", earlier.thread & 31u);
    else format(who, sizeof who, "thread %s", thread_text(&block.threads[earlier.thread]));
    const long offset = static_cast<long>(address - region.low);
    if (order == Order::unordered_blocks) {
        const std::uint32_t number = earlier.block - launch_block;  // in the order of starting
        format(out, size, "%s %s %s at byte %ld; %s of another block (the %u. to start) %s it, and nothing orders the blocks",
               here_text(), verb(touch), region.name, offset, who, number + 1, did);
        return;
    }
    format(out, size, "%s %s %s at byte %ld; %s %s it with no barrier in between", here_text(), verb(touch), region.name,
           offset, who, did);
}

Kind race_in(const Region& region) { return region.space == Space::shared ? Kind::race_shared : Kind::race_global; }

void check_against_writer(const Region& region, const Cell& cell, const Access& access, std::uintptr_t at) {
    const Toucher& writer = cell.writer;
    if (access.touch == Touch::atomic && writer.atomic) return;
    const Order order = order_of(region, writer, *current);
    if (order == Order::ordered) return;
    // A flag that one block sets and another polls is volatile on both sides.
    if (order == Order::unordered_blocks && (access.is_volatile || access.touch == Touch::atomic) &&
        (writer.is_volatile || writer.atomic))
        return;
    char text[400];
    describe(text, sizeof text, region, at, access.touch, writer, writer.atomic ? "updated atomically" : "wrote", order);
    if (access.touch == Touch::write && !writer.atomic) {
        pending = {access.address, access.size < 16 ? access.size : 16, {}, access.pc, writer.pc, race_in(region), {}};
        std::memcpy(pending.before, reinterpret_cast<void*>(access.address), pending.size);
        std::memcpy(pending.text, text, sizeof text);
        is_pending = true;
        return;
    }
    note(race_in(region), Place(access.pc), Place(std::uintptr_t{writer.pc}), "%s", text);
}

void check_against_reader(const Region& region, const Cell& cell, const Access& access, std::uintptr_t at) {
    const Order order = order_of(region, cell.reader, *current);
    if (order == Order::ordered) return;
    if (order == Order::unordered_blocks && (access.is_volatile || access.touch == Touch::atomic) && cell.reader.is_volatile)
        return;
    char text[400];
    describe(text, sizeof text, region, at, access.touch, cell.reader, "read", order);
    note(race_in(region), Place(access.pc), Place(std::uintptr_t{cell.reader.pc}), "%s", text);
}

void remember_reader(Cell& cell, const Access& access) {
    Toucher& reader = cell.reader;
    const std::uint16_t me = static_cast<std::uint16_t>(current->linear), warp = me / warp_size;
    const std::uint16_t syncs = static_cast<std::uint16_t>(current->warp->syncs);
    std::uint16_t folded = me;
    if (reader.epoch == block.epoch && reader.block == block.serial && reader.thread != me) {
        const bool many = reader.thread == several_warps;
        const std::uint16_t reader_warp = (reader.thread & several_lanes) ? reader.thread & 31u : reader.thread / warp_size;
        if (many || reader_warp != warp) folded = several_warps;
        else if (reader.syncs == syncs) folded = several_lanes | warp;
    }
    reader = {block.epoch, block.serial, static_cast<std::uint32_t>(access.pc), folded, syncs, false, access.is_volatile};
}

void remember_writer(Cell& cell, const Access& access) {
    cell.writer = {block.epoch,
                   block.serial,
                   static_cast<std::uint32_t>(access.pc),
                   static_cast<std::uint16_t>(current->linear),
                   static_cast<std::uint16_t>(current->warp->syncs),
                   access.touch == Touch::atomic,
                   access.is_volatile};
    cell.written = true;
}

bool is_uninitialised(const Region& region, const Cell& cell) {
    if (region.space == Space::shared) return cell.writer.epoch < block_epoch;
    return region.poisoned && !cell.written;
}

void touch_cell(const Region& region, Cell& cell, const Access& access, std::uintptr_t at) {
    if (access.touch != Touch::write && is_uninitialised(region, cell)) {
        note(Kind::uninitialised, Place(access.pc), Place(0), "%s %s %s at byte %ld, which nobody has written%s", here_text(),
             verb(access.touch), region.name, static_cast<long>(at - region.low),
             region.space == Space::shared ? " in this block" : "");
    }
    check_against_writer(region, cell, access, at);
    if (access.touch == Touch::read) return remember_reader(cell, access);
    check_against_reader(region, cell, access, at);
    remember_writer(cell, access);
}

bool refuse(const Region& region, const Access& access) {
    const long offset = static_cast<long>(access.address - region.low);
    const unsigned long bytes = region.high - region.low;
    if (access.address < region.low || access.address + access.size > region.high) {
        note(Kind::out_of_bounds, Place(access.pc), Place(0), "%s %s %u bytes at byte %ld of %s, which has %lu bytes", here_text(),
             verb(access.touch), access.size, offset, region.name, bytes);
        return true;
    }
    if (region.read_only && access.touch != Touch::read) {
        note(Kind::input_written, Place(access.pc), Place(0), "%s %s the input %s at byte %ld", here_text(), verb(access.touch),
             region.name, offset);
        return true;
    }
    return false;
}

}  // namespace

void on_access(const Access& access) {
    if (!current) return;
    last_access_pc = access.pc;
    if (is_pending) flush_pending();
    Region* region = find_region(access.address);
    if (!region || refuse(*region, access)) return;
    if (!region->bytewise && (access.address % 4 || access.size % 4)) refine(*region);
    const unsigned step = region->bytewise ? 1 : 4;
    const std::uintptr_t base = region->low & ~std::uintptr_t{3};
    for (std::uintptr_t at = access.address; at < access.address + access.size; at += step)
        touch_cell(*region, region->cells[(at - base) / step], access, at);
    if (access.is_volatile && region->space == Space::global) {
        if (access.touch == Touch::read) acquired = true;
        else publish();
    }
}

void publish() {
    const std::uint32_t number = block.serial - launch_block;
    // A barrier hands a fence on to all threads of the block.
    const bool ordered = fenced[current->linear] || (fence_epoch && fence_epoch < block.epoch);
    if (ordered && number < most_releases) released[number] = true;
}

void on_fence() {
    fenced[current->linear] = true;
    if (!fence_epoch) fence_epoch = block.epoch;
}

void on_atomic(const volatile void* address, unsigned size, int line) {
    on_access({reinterpret_cast<std::uintptr_t>(address), size, Touch::atomic, false, static_cast<std::uintptr_t>(line)});
    publish();
    acquired = true;
}

void checker_open() {
    released = reinterpret_cast<bool*>(new_cells(most_releases / sizeof(Cell) + 1));
    for (unsigned i = 0; i < regions_count; ++i) {
        Region& region = regions[i];
        region.cells_count = (region.high - region.low) / 4 + 2;
        region.cells = new_cells(region.cells_count);
    }
}

void checker_begin_run() {
    for (unsigned i = 0; i < regions_count; ++i)
        std::memset(static_cast<void*>(regions[i].cells), 0, regions[i].cells_count * sizeof(Cell));
}

void checker_begin_launch() {
    launch_block = block.serial + 1;
    std::memset(released, 0, most_releases);
}

void checker_begin_block() {
    block_epoch = block.epoch;
    acquired = false;
    fence_epoch = 0;
    std::memset(fenced, 0, sizeof fenced);
    for (unsigned i = 0; i < block.warps_count; ++i) block.warps[i].syncs = 1;
    poison_shared(checker_poison_seed);
}

void checker_end_block() {
    if (is_pending) flush_pending();
}

void checker_zeroed(const Region& region) {
    for (std::size_t i = 0; i < region.cells_count; ++i) region.cells[i].written = true;
}

}  // namespace cuda_host
