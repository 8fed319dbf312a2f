/* What all of the runtime shares, and the kernels a step calls. C99, also C++; no allocation.

   A network is const data: a qornn_input (qornn_input.h), a struct for each layer (qornn_recurrent.h), a qornn_readout
   (qornn_readout.h). In all of them unused pointers are null, and one positional initializer serves C99 and C++.

   Right shifts of negative numbers are arithmetic on every compiler this is meant for; checked below. */
#ifndef QORNN_H
#define QORNN_H

#include <stddef.h>
#include <stdint.h>

#include "qornn_flash.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Forced: a step must dissolve into the caller whose program is constant, or unused forms stay in flash. */
#if defined(__GNUC__)
#define QORNN_INLINE static inline __attribute__((always_inline))
#else
#define QORNN_INLINE static inline
#endif

/* Called once per sequence: small rather than fast. */
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
#elif defined(__GNUC__) && __GNUC__ >= 8
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

/* How many there are of something in memory; and a position in a stream of bits, which 16 bits do not hold. */
#if SIZE_MAX < UINT32_MAX
typedef uint16_t qornn_count;
typedef uint32_t qornn_bit;
#else
typedef uint32_t qornn_count;
typedef size_t qornn_bit;
#endif

enum { QORNN_OK = 0, QORNN_BAD_CODE = 1 }; /* what a step returns */

/* Units a state buffer has room for, the end of it zero: whole groups of 32/f units, f the narrowest plane of k bits. */
#define QORNN_GROUP_PACKED(k) ((k) % 2u ? 32u : (k) == 4u ? 8u : (k) == 8u ? 4u : 16u)
#define QORNN_UNITS(n_h, group) (((n_h) + (group) - 1u) / (group) * (group))

/* The kernels of W and U: four rows at a time, `stride` entries apart, so that they share the loads of the state h, or
   of the inputs in its place. */

/* sums[r] += (plane of row r) . h, for planes of 1, 2, 4 and 8 bits. */
void qornn_plane1(const QORNN_FLASH uint32_t *rows, size_t stride, size_t words, const int16_t *h, uint32_t sums[4]);
void qornn_plane2(const QORNN_FLASH uint32_t *rows, size_t stride, size_t words, const int16_t *h, uint32_t sums[4]);
void qornn_plane4(const QORNN_FLASH uint32_t *rows, size_t stride, size_t words, const int16_t *h, uint32_t sums[4]);
void qornn_plane8(const QORNN_FLASH uint32_t *rows, size_t stride, size_t words, const int16_t *h, uint32_t sums[4]);

/* y = scale V h + b_o in float32, sums in the order j = 0..n_h-1, never fused. */
QORNN_RARE void qornn_readout_float(const QORNN_FLASH float *V, const QORNN_FLASH float *b_o, float scale, size_t n_o,
                                    size_t n_h, int relu, const int16_t *h, float *y);

/* y = V h + b_o, all integers. */
void qornn_readout_int(const QORNN_FLASH int8_t *V, const QORNN_FLASH int32_t *b_o, size_t n_o, size_t n_h, int relu,
                       const int16_t *h, int32_t *y);

/* y = V h + b_o from V of `bits` bits in one stream, lowest bit first. */
QORNN_RARE void qornn_readout_packed(const QORNN_FLASH uint8_t *V, unsigned bits, const QORNN_FLASH int32_t *b_o,
                                     size_t n_o, size_t n_h, int relu, const int16_t *h, int32_t *y);

/* The readouts of states kept in 32 bits. */
QORNN_RARE void qornn_readout_float_wide(const QORNN_FLASH float *V, const QORNN_FLASH float *b_o, float scale,
                                         size_t n_o, size_t n_h, int relu, const int32_t *h, float *y);
QORNN_RARE void qornn_readout_packed_wide(const QORNN_FLASH uint8_t *V, unsigned bits, const QORNN_FLASH int32_t *b_o,
                                          size_t n_o, size_t n_h, int relu, const int32_t *h, int32_t *y);

/* The readouts of S h, V column by column. States have 16 or 32 bits; the other pointer is null. There is no room for
   S h: it is made four units at a time, each time from all of h. */
QORNN_RARE void qornn_readout_mix_float(const QORNN_FLASH float *V, const QORNN_FLASH float *b_o, float scale,
                                        size_t n_o, size_t n_h, int relu, const int16_t *narrow, const int32_t *wide,
                                        float *y);
QORNN_RARE void qornn_readout_mix_packed(const QORNN_FLASH uint8_t *V, unsigned bits, const QORNN_FLASH int32_t *b_o,
                                         size_t n_o, size_t n_h, int relu, const int16_t *narrow, const int32_t *wide,
                                         int32_t *y);

/* What they see of units j to j + 3 of S h, j a multiple of 4. */
QORNN_RARE void qornn_mix(const int16_t *narrow, const int32_t *wide, size_t n_h, int relu, size_t j, int32_t seen[4]);

#ifdef __cplusplus
}
#endif

#endif
