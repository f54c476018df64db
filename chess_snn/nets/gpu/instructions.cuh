// Instructions of GPUs since Ampere, as functions. The compiler takes this file before trunk.cu; tests
// on a CPU put cuda_on_host.h in its place.

extern __shared__ __align__(128) unsigned char shared[];

__device__ unsigned shared_address(unsigned place) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared)) + place;
}

// A tile of 16 rows and 32 bytes, from the place of one row's half in each lane.
__device__ void load_tile(unsigned (&tile)[4], unsigned place) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(shared_address(place)));
}

// 16 rows by 8 columns of a product over 32 bytes; the lanes of a warp have the operands as PTX says.
__device__ void add_product(int (&sums)[4], const unsigned (&tile)[4], unsigned low, unsigned high) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(tile[0]), "r"(tile[1]), "r"(tile[2]), "r"(tile[3]), "r"(low), "r"(high));
}

__device__ void begin_copy(unsigned place, const void* source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(place)), "l"(source) : "memory");
}

__device__ void end_group_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all groups but the last ones are there.
template <int LAST> __device__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" :: "n"(LAST) : "memory");
}

// Two numbers rounded to bfloat16, the first in the lower half.
__device__ unsigned round_both(float first, float second) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
