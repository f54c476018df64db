// All residual blocks of a spiking network and the convolution of its policy head as one kernel, in
// 8-bit integers.
//
// A group of boards stays in the memory of one multiprocessor from the first layer to the last. Only
// weights come from outside, by stages of some taps (squares of the 3x3 window), while products of
// the stage before are summed. Products are those of tensor cores, m16n8k32: 16 squares of one tick,
// 8 output channels, 32 input channels.
//
// A warp has 64 rows: TICKS times 64 / TICKS squares of one board, and COLUMNS channels of them. So
// it sums all ticks of its squares with each weight that it reads, and then takes their neurons
// through the ticks with the membrane in a register. A current is scale * sum + bias, rounded to
// bfloat16 as if a convolution had written it; the shortcut stays in bfloat16 too. The neuron is
// that of neuron.py, or with LEVELS that of integer_neuron.py. The spikes are those of
// conv_neuron_triton_kernels.py, exactly.
//
// TICKS (1, 2 or 4), CHANNELS, BLOCKS, LEVELS, DECAY, THRESHOLD, WARPS (4 or 8), TAPS_OF_STAGE (1 or
// 3) and STAGES are defined when it is compiled, by trunk.py, which launches it. Of 4 warps two
// blocks share a multiprocessor: one multiplies while the neurons of the other fire.

constexpr unsigned SIDE = 8, SQUARES = SIDE * SIDE, TAPS = 9;
constexpr unsigned POLICY = 2 * BLOCKS, LAYERS = POLICY + 1;  // the policy's is the last one
constexpr unsigned LANES = 32, THREADS = WARPS * LANES, ALL_WARPS = 8;  // of a multiprocessor
constexpr unsigned TILES = 4, TILE_ROWS = 16, TILE_DEPTH = 32;
constexpr unsigned TILES_OF_A_TICK = TILES / TICKS;
constexpr unsigned SHARES = (CHANNELS + 63) / 64, COLUMNS = CHANNELS / SHARES, PAIRS = COLUMNS / 16;
constexpr unsigned BOARDS = WARPS / (TICKS * SHARES);

// Spikes are [board, tick, square, channel]. Chunks of 16 channels change places from square to
// square, so that 8 squares of a row lie in 8 different groups of memory banks.
constexpr unsigned CHUNK = 16, CHUNKS = CHANNELS / CHUNK, CHUNKS_OF_BANKS = 8;
constexpr unsigned SWAPPED = CHUNKS % 8 == 0 ? 7 : CHUNKS % 4 == 0 ? 3 : 1;
constexpr unsigned TICK_BYTES = SQUARES * CHANNELS, BOARD_BYTES = TICKS * TICK_BYTES;
constexpr unsigned FRAGMENT_BYTES = LANES * CHUNK;
constexpr unsigned STEP_BYTES = CHUNKS * FRAGMENT_BYTES;  // weights of TILE_DEPTH input channels
constexpr unsigned STEPS_OF_TAP = CHANNELS / TILE_DEPTH, TAP_BYTES = STEPS_OF_TAP * STEP_BYTES;
constexpr unsigned STAGE_BYTES = TAPS_OF_STAGE * TAP_BYTES, STAGES_OF_LAYER = TAPS / TAPS_OF_STAGE;
constexpr unsigned ALL_STAGES = LAYERS * STAGES_OF_LAYER;

// Places in shared memory.
constexpr unsigned SPIKES = 0, OTHER_SPIKES = SPIKES + BOARDS * BOARD_BYTES;
constexpr unsigned SHORTCUT = OTHER_SPIKES + BOARDS * BOARD_BYTES;
constexpr unsigned SHORTCUT_BYTES = TILES * PAIRS * THREADS * CHUNK;
constexpr unsigned ZEROS = SHORTCUT + SHORTCUT_BYTES;
constexpr unsigned WEIGHTS = ZEROS + CHUNKS_OF_BANKS * CHUNK;

template <typename T> __device__ T& at(unsigned place) {
    return *reinterpret_cast<T*>(shared + place);
}

__device__ float first_of(unsigned both) { return __uint_as_float(both << 16); }
__device__ float second_of(unsigned both) { return __uint_as_float(both & 0xffff0000u); }

// How far behind a tick's first byte a chunk of a square lies, in chunks.
__device__ unsigned place_of(unsigned square, unsigned chunk) {
    return square * CHUNKS + (chunk ^ (square * CHUNKS / CHUNKS_OF_BANKS & SWAPPED));
}

__device__ constexpr bool is_power_of_two(float number) {
    while (number > 1) number /= 2;
    while (number < 1) number *= 2;
    return number == 1;
}

// Spikes of one neuron in one tick; the membrane is that of the next tick afterwards.
__device__ unsigned fire(float& membrane, float current) {
    if constexpr (LEVELS > 0) {
        // How many thresholds (k - 1/2) THRESHOLD it reaches, at least 0: the whole part of
        // current / THRESHOLD + 1/2, which a sum rounded down leaves in the lowest bits.
        constexpr bool IS_EXACT = is_power_of_two(THRESHOLD);
        float scaled = __fadd_rn(__fmul_rn(current, 1.0f / THRESHOLD), 0.5f);
        float shifted = __fadd_rd(fminf(fmaxf(scaled, 0.0f), LEVELS), 8388608.0f);
        unsigned reached = __float_as_uint(shifted) & 0xff;
        if constexpr (!IS_EXACT) {  // a quotient was rounded, and so is each threshold
            float number = shifted - 8388608.0f;
            if (number > 0 && current < __fmul_rn(THRESHOLD, number - 0.5f)) return reached - 1;
            if (number < LEVELS && current >= __fmul_rn(THRESHOLD, number + 0.5f)) return reached + 1;
        }
        return reached;
    }
    float charge = __fadd_rn(__fmul_rn(membrane, DECAY), current);
    unsigned fires = charge >= THRESHOLD;
    membrane = fires ? 0.0f : charge;
    return fires;
}

// A sum of products as a float. Where none is above 2^22 a sum of floats converts it.
__device__ float number_of(int sum) {
    constexpr float BASE = 3 << 22;  // whose bits are these
    constexpr unsigned BASE_BITS = 0x4b400000;
    constexpr long long LARGEST = 127LL * (LEVELS > 0 ? LEVELS : 1) * TAPS * CHANNELS;
    if constexpr (LARGEST >= 1 << 22) return static_cast<float>(sum);
    return __uint_as_float(BASE_BITS + sum) - BASE;
}

// Share of a thread in the 16 squares and 8 channels of one product: two neighbouring channels of
// the squares `row` and `row + 8`. All that is below runs over these in the same order.
struct Thread {
    unsigned lane, share, board, first_square;

    __device__ Thread() {
        unsigned warp = threadIdx.x / LANES;
        lane = threadIdx.x % LANES;
        share = warp % SHARES;
        board = warp / SHARES / TICKS;
        first_square = warp / SHARES % TICKS * TILES_OF_A_TICK * TILE_ROWS;
    }
    __device__ unsigned square(unsigned tile_of_tick, unsigned half) const {
        return first_square + tile_of_tick * TILE_ROWS + half * 8 + lane / 4;
    }
    __device__ unsigned channel(unsigned eight) const {
        return share * COLUMNS + eight * 8 + lane % 4 * 2;
    }
    // Address of the shortcut of one tile and two groups of 8 channels: 16 bytes.
    __device__ unsigned shortcut(unsigned tile, unsigned pair) const {
        return SHORTCUT + ((tile * PAIRS + pair) * THREADS + threadIdx.x) * CHUNK;
    }
    __device__ void write(unsigned spikes, unsigned tick, unsigned square, unsigned channel,
                          unsigned first, unsigned second) const {
        unsigned place = place_of(square, channel / CHUNK) * CHUNK + channel % CHUNK;
        at<unsigned short>(spikes + board * BOARD_BYTES + tick * TICK_BYTES + place) =
            static_cast<unsigned short>(first | second << 8);
    }
};

// Spikes and shortcut of the first layer from the current of the stem, the same in all ticks.
__device__ void begin_boards(const Thread& me, const unsigned short* current, unsigned left) {
    for (unsigned tile = 0; tile < TILES_OF_A_TICK; ++tile)
        for (unsigned eight = 0; eight < COLUMNS / 8; ++eight)
            for (unsigned half = 0; half < 2; ++half) {
                unsigned square = me.square(tile, half), channel = me.channel(eight);
                unsigned from = (me.board * SQUARES + square) * CHANNELS + channel;
                unsigned both = me.board < left
                    ? *reinterpret_cast<const unsigned*>(current + from) : 0;
                float first = 0, second = 0;
                for (unsigned tick = 0; tick < TICKS; ++tick) {
                    unsigned place = me.shortcut(tile * TICKS + tick, eight / 2);
                    at<unsigned>(place + (eight % 2 * 2 + half) * 4) = both;
                    unsigned one = fire(first, first_of(both));
                    me.write(SPIKES, tick, square, channel, one, fire(second, second_of(both)));
                }
            }
}

__device__ void end_boards(unsigned char* fired, unsigned first_board, unsigned num_boards) {
    for (unsigned chunk = threadIdx.x; chunk < BOARDS * TICKS * SQUARES * CHUNKS; chunk += THREADS) {
        unsigned square = chunk / CHUNKS % SQUARES, of_tick = chunk / (CHUNKS * SQUARES);
        unsigned board = first_board + of_tick / TICKS;
        if (board >= num_boards) break;
        unsigned long long to =
            ((of_tick % TICKS * static_cast<unsigned long long>(num_boards) + board) * SQUARES + square)
            * CHUNKS + chunk % CHUNKS;
        reinterpret_cast<uint4*>(fired)[to] =
            at<uint4>(SPIKES + of_tick * TICK_BYTES + place_of(square, chunk % CHUNKS) * CHUNK);
    }
}

// Add the products of one stage of taps.
__device__ void add_stage(const Thread& me, int (&sums)[TILES][COLUMNS / 8][4], unsigned spikes,
                          unsigned weights, unsigned first_tap) {
    #pragma unroll
    for (unsigned i = 0; i < TAPS_OF_STAGE; ++i) {
        unsigned tap = first_tap + i;
        int down = static_cast<int>(tap / 3) - 1, right = static_cast<int>(tap % 3) - 1;
        #pragma unroll
        for (unsigned step = 0; step < STEPS_OF_TAP; ++step) {
            unsigned tiles[TILES][4];
            #pragma unroll
            for (unsigned of_tick = 0; of_tick < TILES_OF_A_TICK; ++of_tick) {
                unsigned square = me.first_square + of_tick * TILE_ROWS + me.lane % TILE_ROWS;
                unsigned y = square / SIDE + down, x = square % SIDE + right;
                bool on_board = y < SIDE && x < SIDE;
                unsigned chunk =
                    place_of(y % SIDE * SIDE + x % SIDE, step * 2 + me.lane / TILE_ROWS);
                // A square off the board is zeros in the banks that no other square needs.
                unsigned place = on_board ? spikes + me.board * BOARD_BYTES + chunk * CHUNK
                                          : ZEROS + chunk % CHUNKS_OF_BANKS * CHUNK;
                #pragma unroll
                for (unsigned tick = 0; tick < TICKS; ++tick)
                    load_tile(tiles[of_tick * TICKS + tick],
                              place + (on_board ? tick * TICK_BYTES : 0));
            }
            #pragma unroll
            for (unsigned pair = 0; pair < PAIRS; ++pair) {
                unsigned fragment = (i * STEPS_OF_TAP + step) * CHUNKS + me.share * PAIRS + pair;
                uint4 both = at<uint4>(weights + fragment * FRAGMENT_BYTES + me.lane * CHUNK);
                #pragma unroll
                for (unsigned tile = 0; tile < TILES; ++tile) {
                    add_product(sums[tile][pair * 2], tiles[tile], both.x, both.y);
                    add_product(sums[tile][pair * 2 + 1], tiles[tile], both.z, both.w);
                }
            }
        }
    }
}

enum Layer { FIRST, SECOND, HEAD };

// The spikes of a layer from its sums, to `spikes`. The second layer of a block adds the shortcut;
// of the head's neurons the mean over the ticks goes to `rate`, if there is one.
template <Layer LAYER>
__device__ void fire_layer(const Thread& me, const int (&sums)[TILES][COLUMNS / 8][4],
                           unsigned spikes, const float* scale, const float* bias, float* rate) {
    #pragma unroll
    for (unsigned eight = 0; eight < COLUMNS / 8; ++eight) {
        unsigned channel = me.channel(eight);
        float2 scales = *reinterpret_cast<const float2*>(scale + channel);
        float2 biases = *reinterpret_cast<const float2*>(bias + channel);
        #pragma unroll
        for (unsigned of_tick = 0; of_tick < TILES_OF_A_TICK; ++of_tick)
            #pragma unroll
            for (unsigned half = 0; half < 2; ++half) {
                unsigned square = me.square(of_tick, half), fired_first = 0, fired_second = 0;
                float first = 0, second = 0;
                #pragma unroll
                for (unsigned tick = 0; tick < TICKS; ++tick) {
                    unsigned tile = of_tick * TICKS + tick;
                    const int (&sum)[4] = sums[tile][eight];
                    unsigned both = round_both(
                        __fadd_rn(__fmul_rn(number_of(sum[half * 2]), scales.x), biases.x),
                        __fadd_rn(__fmul_rn(number_of(sum[half * 2 + 1]), scales.y), biases.y));
                    if (LAYER == SECOND) {
                        unsigned& carried =
                            at<unsigned>(me.shortcut(tile, eight / 2) + (eight % 2 * 2 + half) * 4);
                        both = round_both(first_of(both) + first_of(carried),
                                          second_of(both) + second_of(carried));
                        carried = both;
                    }
                    unsigned one = fire(first, first_of(both)), other = fire(second, second_of(both));
                    fired_first += one;
                    fired_second += other;
                    if (LAYER != HEAD) me.write(spikes, tick, square, channel, one, other);
                }
                if (LAYER == HEAD && rate)
                    *reinterpret_cast<float2*>(rate + square * CHANNELS + channel) = {
                        static_cast<float>(fired_first) / TICKS,
                        static_cast<float>(fired_second) / TICKS};
            }
    }
}

// current bfloat16[boards, squares, channels]: of the stem. fired uint8[ticks, boards, squares,
// channels]: spikes of the last block. rate float32[boards, squares, channels]: of the policy head.
// weight int8[layers, taps, ...], by fragments; scale and bias float32[layers, channels].
extern "C" __global__ void __launch_bounds__(THREADS, ALL_WARPS / WARPS)
fire_trunk(const unsigned short* current, const unsigned char* weight, const float* scale,
            const float* bias, unsigned char* fired, float* rate, unsigned num_boards) {
    const Thread me;
    const unsigned groups = (num_boards + BOARDS - 1) / BOARDS;
    const unsigned mine = blockIdx.x < groups ? (groups - blockIdx.x - 1) / gridDim.x + 1 : 0;
    const unsigned num_stages = mine * ALL_STAGES;
    auto begin_stage = [&](unsigned stage) {
        if (stage < num_stages) {
            const unsigned char* source = weight + stage % ALL_STAGES * STAGE_BYTES;
            unsigned place = WEIGHTS + stage % STAGES * STAGE_BYTES;
            for (unsigned byte = threadIdx.x * CHUNK; byte < STAGE_BYTES; byte += THREADS * CHUNK)
                begin_copy(place + byte, source + byte);
        }
        end_group_of_copies();
    };
    for (unsigned stage = 0; stage < STAGES - 1; ++stage) begin_stage(stage);
    if (threadIdx.x < CHUNKS_OF_BANKS * CHUNK / 4) at<unsigned>(ZEROS + threadIdx.x * 4) = 0;
    unsigned stage = 0;
    for (unsigned group = blockIdx.x; group < groups; group += gridDim.x) {
        unsigned first_board = group * BOARDS;
        begin_boards(me, current + static_cast<unsigned long long>(first_board) * TICK_BYTES,
                     num_boards - first_board);
        for (unsigned layer = 0; layer < LAYERS; ++layer) {
            int sums[TILES][COLUMNS / 8][4] = {};
            unsigned spikes = layer % 2 ? OTHER_SPIKES : SPIKES;
            for (unsigned part = 0; part < STAGES_OF_LAYER; ++part, ++stage) {
                wait_for_copies<STAGES - 2>();
                // The stage is there, the spikes are written, and the stage before was read.
                __syncthreads();
                begin_stage(stage + STAGES - 1);
                add_stage(me, sums, spikes, WEIGHTS + stage % STAGES * STAGE_BYTES,
                          part * TAPS_OF_STAGE);
            }
            const float *scales = scale + layer * CHANNELS, *biases = bias + layer * CHANNELS;
            unsigned long long board = first_board + me.board;
            if (layer == POLICY)
                fire_layer<HEAD>(me, sums, 0, scales, biases,
                                 board < num_boards ? rate + board * TICK_BYTES : nullptr);
            else if (layer % 2)
                fire_layer<SECOND>(me, sums, SPIKES, scales, biases, nullptr);
            else
                fire_layer<FIRST>(me, sums, OTHER_SPIKES, scales, biases, nullptr);
        }
        end_boards(fired, first_board, num_boards);
        __syncthreads();
    }
}
