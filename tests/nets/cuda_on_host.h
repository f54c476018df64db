// As much of CUDA as trunk.cu uses, on one processor, in place of instructions.cuh.
//
// Threads of a block are fibers that take turns at barriers. What a warp does together, it does when
// its last thread comes. A copy is made when its thread waits for it, and not before.

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#define __global__
#define __device__ inline
#define __launch_bounds__(...)

struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
struct Index { unsigned x; };
static Index threadIdx, blockIdx, gridDim;

alignas(128) static unsigned char shared[1 << 20];
static constexpr unsigned MOST_THREADS = 256, STACK = 1 << 16;

struct Copy { unsigned place; const void* source; };
struct Fiber {
    ucontext_t context;
    std::vector<unsigned char> stack = std::vector<unsigned char>(STACK);
    std::deque<std::vector<Copy>> groups;
    std::vector<Copy> begun;
    bool is_done;
};
static std::vector<Fiber> fibers(MOST_THREADS);
static ucontext_t scheduler;
static std::function<void()> body;

struct Barrier {
    unsigned threads, waiting = 0, turn = 0;
    void wait() {
        unsigned mine = turn;
        if (++waiting == threads) { waiting = 0; ++turn; return; }
        while (turn == mine) {
            unsigned self = threadIdx.x;
            swapcontext(&fibers[self].context, &scheduler);
            threadIdx.x = self;
        }
    }
};
static Barrier block_barrier;
static Barrier warp_barriers[MOST_THREADS / 32];
static unsigned published[2][MOST_THREADS][8];
static unsigned parity[MOST_THREADS];

inline void __syncthreads() { block_barrier.wait(); }
inline float __uint_as_float(unsigned bits) { float value; std::memcpy(&value, &bits, 4); return value; }
inline unsigned __float_as_uint(float value) { unsigned bits; std::memcpy(&bits, &value, 4); return bits; }
inline float __fadd_rd(float a, float b) {
    double exact = double(a) + b;
    float sum = float(exact);
    return sum > exact ? std::nextafterf(sum, -INFINITY) : sum;
}
inline float __fadd_rn(float a, float b) { volatile float sum = a + b; return sum; }
inline float __fmul_rn(float a, float b) { volatile float product = a * b; return product; }

// Exchanges numbers between all lanes of a warp.
inline unsigned (*exchange(const unsigned* mine, unsigned count))[8] {
    unsigned self = threadIdx.x, side = parity[self] ^= 1;
    std::memcpy(published[side][self], mine, count * 4);
    warp_barriers[self / 32].wait();
    return published[side] + self / 32 * 32;
}

inline void load_tile(unsigned (&tile)[4], unsigned place) {
    auto places = exchange(&place, 1);
    unsigned lane = threadIdx.x % 32;
    for (unsigned i = 0; i < 4; ++i)
        std::memcpy(&tile[i], shared + places[i * 8 + lane / 4][0] + lane % 4 * 4, 4);
}

inline void add_product(int (&sums)[4], const unsigned (&tile)[4], unsigned low, unsigned high) {
    unsigned mine[6] = {tile[0], tile[1], tile[2], tile[3], low, high};
    auto all = exchange(mine, 6);
    unsigned lane = threadIdx.x % 32;
    auto number = [](unsigned word, unsigned i) { return int(int8_t(word >> 8 * i)); };
    for (unsigned i = 0; i < 4; ++i) {
        unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 32; ++k) {
            unsigned quarter = k % 16 / 4;
            sums[i] += number(all[row % 8 * 4 + quarter][row / 8 + k / 16 * 2], k % 4)
                * number(all[column * 4 + quarter][4 + k / 16], k % 4);
        }
    }
}

inline void begin_copy(unsigned place, const void* source) {
    fibers[threadIdx.x].begun.push_back({place, source});
}
inline void end_group_of_copies() {
    Fiber& me = fibers[threadIdx.x];
    me.groups.push_back(std::move(me.begun));
    me.begun.clear();
}
template <int LAST> void wait_for_copies() {
    auto& groups = fibers[threadIdx.x].groups;
    for (; groups.size() > LAST; groups.pop_front())
        for (const Copy& copy : groups.front()) std::memcpy(shared + copy.place, copy.source, 16);
}

inline unsigned rounded(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline unsigned round_both(float first, float second) { return rounded(first) | rounded(second) << 16; }

inline void enter(int thread) {
    body();
    fibers[thread].is_done = true;
}

// Run all blocks one after the other; shared memory holds garbage when each begins.
inline void launch(unsigned blocks, unsigned threads, std::function<void()> kernel) {
    body = kernel;
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        std::memset(shared, 0x55, sizeof shared);
        block_barrier = Barrier{threads};
        for (unsigned thread = 0; thread < threads; ++thread) {
            warp_barriers[thread / 32] = Barrier{32};
            Fiber& fiber = fibers[thread];
            fiber.is_done = false;
            fiber.groups.clear();
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = STACK;
            fiber.context.uc_link = &scheduler;
            makecontext(&fiber.context, reinterpret_cast<void (*)()>(enter), 1, int(thread));
        }
        for (bool is_running = true; is_running;) {
            is_running = false;
            for (unsigned thread = threads; thread-- > 0;) {
                if (fibers[thread].is_done) continue;
                is_running = true;
                threadIdx.x = thread;
                swapcontext(&scheduler, &fibers[thread].context);
            }
        }
    }
}
