// trunk.cu as a function for ctypes.

#include "cuda_on_host.h"

#include "trunk.cu"

extern "C" void fire_trunk_on_host(
    unsigned blocks, const unsigned short* current, const unsigned char* weight, const float* scale,
    const float* bias, unsigned char* fired, float* rate, unsigned num_boards) {
    launch(blocks, THREADS, [=] { fire_trunk(current, weight, scale, bias, fired, rate, num_boards); });
}

extern "C" unsigned shared_bytes_on_host() { return WEIGHTS + STAGES * STAGE_BYTES; }
