// cooperative_groups.h: thread blocks, tiles of up to 32 threads, coalesced groups, and reductions over them. Lines are
// those of the caller (__builtin_LINE as a default argument). Grid- and cluster-wide synchronisation is not here.
#pragma once
#include "warp.hpp"

namespace cooperative_groups {

#define CUDA_HOST_HERE int line = __builtin_LINE()

class thread_block {
   public:
    static void sync(CUDA_HOST_HERE) { ::cuda_host::block_barrier(line, 0, ::cuda_host::BarrierKind::plain); }
    static unsigned thread_rank() { return ::cuda_host::current->linear; }
    static unsigned size() { return ::cuda_host::block_dim.x * ::cuda_host::block_dim.y * ::cuda_host::block_dim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return ::cuda_host::block_index; }
    static dim3 thread_index() { return ::cuda_host::current->index; }
    static dim3 group_dim() { return ::cuda_host::block_dim; }
    static dim3 dim_threads() { return ::cuda_host::block_dim; }
};
inline thread_block this_thread_block() { return {}; }

// A set of lanes of one warp, ranked by lane.
class lane_group {
   public:
    explicit lane_group(unsigned lanes) : lanes_(lanes) {}

    void sync(CUDA_HOST_HERE) const { ::cuda_host::sync_warp(line, lanes_); }
    unsigned thread_rank() const { return __builtin_popcount(lanes_ & ((1u << ::cuda_host::current->lane) - 1)); }
    unsigned size() const { return __builtin_popcount(lanes_); }
    unsigned num_threads() const { return size(); }

    template <class T>
    T shfl(T value, int rank, CUDA_HOST_HERE) const {
        return ::cuda_host::shuffle_from(line, lanes_, value, lane_of(static_cast<unsigned>(rank) % size()));
    }
    template <class T>
    T shfl_up(T value, unsigned delta, CUDA_HOST_HERE) const {
        const unsigned rank = thread_rank();
        return ::cuda_host::shuffle_from(line, lanes_, value, lane_of(rank < delta ? rank : rank - delta));
    }
    template <class T>
    T shfl_down(T value, unsigned delta, CUDA_HOST_HERE) const {
        const unsigned rank = thread_rank();
        return ::cuda_host::shuffle_from(line, lanes_, value, lane_of(rank + delta < size() ? rank + delta : rank));
    }
    bool any(int predicate, CUDA_HOST_HERE) const { return ::cuda_host::ballot(line, lanes_, predicate != 0) != 0; }
    bool all(int predicate, CUDA_HOST_HERE) const { return ::cuda_host::ballot(line, lanes_, predicate == 0) == 0; }
    unsigned ballot(int predicate, CUDA_HOST_HERE) const {
        return ranks_of(::cuda_host::ballot(line, lanes_, predicate != 0));
    }
    template <class T>
    unsigned match_any(T value, CUDA_HOST_HERE) const {
        return ranks_of(::cuda_host::match_any(line, lanes_, value));
    }
    unsigned lanes() const { return lanes_; }

   protected:
    int lane_of(unsigned rank) const {
        unsigned rest = lanes_;
        while (rank--) rest &= rest - 1;
        return __builtin_ctz(rest);
    }
    unsigned ranks_of(unsigned lanes) const {
        unsigned ranks = 0, rank = 0;
        for (unsigned rest = lanes_; rest; rest &= rest - 1, ++rank)
            if (lanes >> __builtin_ctz(rest) & 1) ranks |= 1u << rank;
        return ranks;
    }

   private:
    unsigned lanes_;
};

class coalesced_group : public lane_group {
   public:
    using lane_group::lane_group;
};

inline coalesced_group coalesced_threads(CUDA_HOST_HERE) { return coalesced_group(::cuda_host::active_mask(line)); }

template <unsigned Size, class Parent = thread_block>
class thread_block_tile : public lane_group {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

   public:
    thread_block_tile() : lane_group(tile_lanes()) {}
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned thread_rank() { return ::cuda_host::current->linear % Size; }
    static unsigned meta_group_rank() { return ::cuda_host::current->linear / Size; }
    static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }

    template <class T>
    T shfl(T value, int rank, CUDA_HOST_HERE) const {
        return ::cuda_host::shuffle(line, lanes(), value, rank, Size);
    }
    template <class T>
    T shfl_up(T value, unsigned delta, CUDA_HOST_HERE) const {
        return ::cuda_host::shuffle_up(line, lanes(), value, delta, Size);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, CUDA_HOST_HERE) const {
        return ::cuda_host::shuffle_down(line, lanes(), value, delta, Size);
    }
    template <class T>
    T shfl_xor(T value, int mask, CUDA_HOST_HERE) const {
        return ::cuda_host::shuffle_xor(line, lanes(), value, mask, Size);
    }

   private:
    static unsigned tile_lanes() {
        if constexpr (Size == 32) return 0xffffffffu;
        else return ((1u << Size) - 1) << (::cuda_host::current->lane / Size * Size);
    }
};

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) { return {}; }

// Sizes known at run time only: the general group.
inline lane_group tiled_partition(const thread_block&, unsigned size) {
    const unsigned lane = ::cuda_host::current->lane;
    return lane_group(size == 32 ? 0xffffffffu : ((1u << size) - 1) << (lane / size * size));
}

template <class Group>
inline void sync(const Group& group, CUDA_HOST_HERE) { group.sync(line); }

template <class T>
struct plus : ::cuda_host::Plus {};
template <class T>
struct less : ::cuda_host::Less {};
template <class T>
struct greater : ::cuda_host::Greater {};
template <class T>
struct bit_and : ::cuda_host::BitAnd {};
template <class T>
struct bit_or : ::cuda_host::BitOr {};
template <class T>
struct bit_xor : ::cuda_host::BitXor {};

// A stateless functor is folded once for all lanes; of any other the lanes pass their values round, and each folds all.
// Both go in rank order.
template <class Group, class T, class F>
inline T reduce(const Group& group, T value, F&& combine, CUDA_HOST_HERE) {
    using Functor = std::decay_t<F>;
    if constexpr (std::is_empty_v<Functor> && std::is_default_constructible_v<Functor> && sizeof(T) <= 8)
        return ::cuda_host::reduce<Functor>(line, group.lanes(), value);
    T total = group.shfl(value, 0, line);
    for (unsigned rank = 1; rank < group.size(); ++rank) total = combine(total, group.shfl(value, rank, line));
    return total;
}

template <class Group, class T, class F>
inline T inclusive_scan(const Group& group, T value, F&& combine, CUDA_HOST_HERE) {
    T total = group.shfl(value, 0, line);
    for (unsigned rank = 1; rank < group.size(); ++rank) {
        const T next = group.shfl(value, rank, line);
        if (rank <= group.thread_rank()) total = combine(total, next);
    }
    return total;
}
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value, CUDA_HOST_HERE) {
    return inclusive_scan(group, value, plus<T>(), line);
}
template <class Group, class T, class F>
inline T exclusive_scan(const Group& group, T value, F&& combine, CUDA_HOST_HERE) {
    const T total = group.shfl_up(inclusive_scan(group, value, combine, line), 1, line);
    return group.thread_rank() == 0 ? T{} : total;
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value, CUDA_HOST_HERE) {
    return exclusive_scan(group, value, plus<T>(), line);
}

class grid_group {  // ranks and sizes only
   public:
    static unsigned long long num_blocks() {
        return 1ull * ::cuda_host::grid_dim.x * ::cuda_host::grid_dim.y * ::cuda_host::grid_dim.z;
    }
    static unsigned long long block_rank() {
        const uint3 b = ::cuda_host::block_index;
        return b.x + 1ull * ::cuda_host::grid_dim.x * (b.y + 1ull * ::cuda_host::grid_dim.y * b.z);
    }
    static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    static unsigned long long size() { return num_blocks() * thread_block::size(); }
    static unsigned long long num_threads() { return size(); }
    static dim3 group_dim() { return ::cuda_host::grid_dim; }
    // Whoever calls it gets a message from the compiler, which the build turns into `unsupported`.
    __attribute__((error("host device: no support for grid-wide synchronisation"))) static void sync(int line = 0);
};
inline grid_group this_grid() { return {}; }


#undef CUDA_HOST_HERE

}  // namespace cooperative_groups
