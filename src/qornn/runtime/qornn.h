/* The integer network as const data, and the kernels a step calls. C99, also C++; no allocation.

       acc  = sum W_i h_i and sum U_i x_i     32 bits: the program was proved not to overflow when it was built
       h_i' = requant(activation(acc))        k_a bits
       y    = V h_i + b_o                     float32, or V of at most 8 bits and 32-bit sums

   Right shifts of negative numbers are arithmetic on every compiler this is meant for; checked below. */
#ifndef QORNN_H
#define QORNN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Forced: a step must dissolve into the caller whose program is constant, or unused forms stay in flash. */
#if defined(__GNUC__)
#define QORNN_INLINE static inline __attribute__((always_inline))
#else
#define QORNN_INLINE static inline
#endif

/* Called once a sequence: small rather than fast. */
#if defined(__GNUC__)
#define QORNN_RARE __attribute__((cold))
#else
#define QORNN_RARE
#endif

/* Where there is assembly for the smallest cores. It names registers, by a keyword C++17 took away. */
#if defined(__GNUC__) && defined(__thumb__) && !defined(__ARM_BIG_ENDIAN) && \
    (!defined(__cplusplus) || __cplusplus < 201703L)
#define QORNN_ASSEMBLY 1
#else
#define QORNN_ASSEMBLY 0
#endif

/* A loop whose body twice over would not fit the registers, or only take flash. */
#if defined(__clang__)
#define QORNN_ROLLED _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__)
#define QORNN_ROLLED _Pragma("GCC unroll 1")
#else
#define QORNN_ROLLED
#endif

/* What seldom holds. */
#if defined(__GNUC__)
#define QORNN_RARELY(condition) __builtin_expect(!!(condition), 0)
#else
#define QORNN_RARELY(condition) (condition)
#endif

typedef char qornn_right_shift_is_arithmetic[(-1 >> 1) == -1 ? 1 : -1];
typedef char qornn_int_has_32_bits[sizeof(int) >= 4 ? 1 : -1]; /* with 16, products of int16 would overflow */

enum { QORNN_CODES, QORNN_SAMPLES };                                            /* input */
enum { QORNN_RELU, QORNN_MODRELU, QORNN_IDENTITY };                             /* activation */
enum { QORNN_MULTIPLIER, QORNN_THRESHOLDS, QORNN_PER_ROW, QORNN_SHIFT };         /* requant */
enum { QORNN_DENSE, QORNN_HADAMARD, QORNN_CYCLE, QORNN_DELAY };             /* recurrent */
enum { QORNN_FLOAT, QORNN_INT };                                                /* readout */
enum { QORNN_LAST, QORNN_ALL };                                                 /* steps */
enum { QORNN_OK = 0, QORNN_BAD_CODE = 1 };                                      /* what a step returns */

/* Units a state buffer has room for, the end of it zero: whole groups of 32/f units, f the narrowest plane of k bits. */
#define QORNN_GROUP_PACKED(k) ((k) % 2u ? 32u : (k) == 4u ? 8u : (k) == 8u ? 4u : 16u)
#define QORNN_UNITS(n_h, group) (((n_h) + (group) - 1u) / (group) * (group))

/* Unused pointers are null. Fields come in this order so that one positional initializer serves C99 and C++. */
typedef struct {
    uint32_t n_i, n_h, n_o;
    uint8_t bits_W, bits_U, bits_h, bits_x;
    uint8_t input, activation, requant, readout, steps;

    /* Samples: raw is clamped to low..high; x_i is raw itself when plain, or
       clamp(((raw - x_offset) x_multiplier + half) >> x_shift), channel by channel. */
    uint8_t plain;
    int16_t low, high;
    const int32_t *x_offset;
    const int32_t *x_multiplier;
    const uint8_t *x_shift;

    /* The planes of W, row by row (qornn_plane.h); U as one stream of bits_U-bit fields u + 2^(bits_U-1),
       field c n_h + j, lowest bit first, with one byte to spare after the end.
       For several samples per step, U may lie row by row as W does (U_planes); the kernels of W then multiply it too. */
    const uint32_t *W_planes;
    const uint8_t *U_packed;
    const uint32_t *U_planes;

    const int32_t *bias;      /* modReLU, or identity where there is one, in scheme paper */
    const int64_t *bias_wide; /* the same with per-row multipliers */

    uint8_t shift_W, shift_U; /* scheme paper: acc = 2^shift_W sum W_i h_i + 2^shift_U sum U_i x_i */
    uint8_t shift; /* MULTIPLIER: (acc multiplier + half) >> shift; SHIFT: (acc + half) >> shift, proved to fit 32 bits */
    uint32_t multiplier;
    const int32_t *thresholds; /* 2^(bits_h-1) - 1 of them */
    const int32_t *M_W, *M_U, *M_I; /* per row; M_I only with the identity offset */
    const uint8_t *row_shift;
    uint8_t alike; /* one multiplier of each kind and one shift serve every row */

    uint8_t readout_relu;
    const float *V; /* row by row */
    const float *b_o;
    float scale;
    const int8_t *V_int;
    const int32_t *b_o_int;

    /* What there is instead of W_planes when W is not stored but known (qornn_structured.h). */
    uint8_t recurrent;
    uint8_t moves;   /* DELAY: units along a line keep their value; U, bias and M_W have a row for each line only */
    uint32_t block;  /* HADAMARD: units that one transform mixes; DELAY: lines */
    const uint8_t *signs; /* bit j % 8 of byte j / 8: whether row j (DELAY: line j) is negated */

    /* U of 2, 4 or 8 bits, two's complement fields in words, lowest bit first, each column in whole words. */
    const uint32_t *U_words;
    uint8_t bits_V;          /* V_packed: one stream of fields v + 2^(bits_V-1) row by row */
    const uint8_t *V_packed;
    uint8_t mix; /* S h is read out, S Sylvester's matrix, n_h a power of 2: V or V_packed then lie column by column */
} qornn_program;

/* The kernels of W and U: four rows at a time, `stride` entries apart, so that they share the loads of the state h, or
   of the inputs in its place. */

/* sums[r] += 2^shift (plane of row r) . h, for planes of 1, 2, 4 and 8 bits. */
void qornn_plane1(const uint32_t *rows, size_t stride, size_t words, const int16_t *h, unsigned shift, uint32_t sums[4]);
void qornn_plane2(const uint32_t *rows, size_t stride, size_t words, const int16_t *h, unsigned shift, uint32_t sums[4]);
void qornn_plane4(const uint32_t *rows, size_t stride, size_t words, const int16_t *h, unsigned shift, uint32_t sums[4]);
void qornn_plane8(const uint32_t *rows, size_t stride, size_t words, const int16_t *h, unsigned shift, uint32_t sums[4]);

/* y = scale V h + b_o in float32, sums in the order j = 0..n_h-1, never fused. */
QORNN_RARE void qornn_readout_float(const float *V, const float *b_o, float scale, size_t n_o, size_t n_h, int relu,
                         const int16_t *h, float *y);

/* y = V h + b_o, all integers. */
void qornn_readout_int(const int8_t *V, const int32_t *b_o, size_t n_o, size_t n_h, int relu, const int16_t *h,
                       int32_t *y);

/* y = V h + b_o from V of `bits` bits in one stream, lowest bit first. */
QORNN_RARE void qornn_readout_packed(const uint8_t *V, unsigned bits, const int32_t *b_o, size_t n_o, size_t n_h,
                                     int relu, const int16_t *h, int32_t *y);

/* The readouts of states kept in 32 bits. */
QORNN_RARE void qornn_readout_float_wide(const float *V, const float *b_o, float scale, size_t n_o, size_t n_h, int relu,
                                         const int32_t *h, float *y);
QORNN_RARE void qornn_readout_packed_wide(const uint8_t *V, unsigned bits, const int32_t *b_o, size_t n_o, size_t n_h,
                                          int relu, const int32_t *h, int32_t *y);

/* The readouts of S h, V column by column. States have 16 or 32 bits; the other pointer is null. There is no room for
   S h: it is made four units at a time, each time from all of h. */
QORNN_RARE void qornn_readout_mix_float(const float *V, const float *b_o, float scale, size_t n_o, size_t n_h, int relu,
                                        const int16_t *narrow, const int32_t *wide, float *y);
QORNN_RARE void qornn_readout_mix_packed(const uint8_t *V, unsigned bits, const int32_t *b_o, size_t n_o, size_t n_h,
                                         int relu, const int16_t *narrow, const int32_t *wide, int32_t *y);

/* What they see of units j to j + 3 of S h, j a multiple of 4. */
QORNN_RARE void qornn_mix(const int16_t *narrow, const int32_t *wide, size_t n_h, int relu, size_t j, int32_t seen[4]);

#ifdef __cplusplus
}
#endif

#endif
