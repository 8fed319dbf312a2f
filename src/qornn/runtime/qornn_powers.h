/* Rounding and saturation where every scale is a power of two. */
#ifndef QORNN_POWERS_H
#define QORNN_POWERS_H

#include "qornn.h"

/* 2^e as two shifts: to the left by `up` on one side of a sum, by `down` on the other; one of them is 0. */
QORNN_INLINE uint32_t qornn_up(int32_t e) { return (uint32_t)(e & ~(e >> 31)); }
QORNN_INLINE uint32_t qornn_down(int32_t e) { return qornn_up(e) - (uint32_t)e; }

/* v / 2^shift to the nearest, ties away from zero; shift is at least 1, v above -2^31. */
QORNN_INLINE int32_t qornn_half_away(int32_t v, uint32_t shift) { return (((v + (v >> 31)) >> (shift - 1u)) + 1) >> 1; }

/* v within -top..top, top = 2^(bits-1) - 1; `negative` is -1 where v is below zero, else 0, and either at zero. */
QORNN_INLINE int32_t qornn_saturated(int32_t v, int32_t negative, unsigned bits) {
    const int32_t top = (int32_t)((1u << (bits - 1)) - 1u);
    (void)negative;
#if defined(__ARM_FEATURE_SAT)
    v = v < -top - 1 ? -top - 1 : v > top ? top : v; /* one instruction */
    return v - ((v + top) >> 31);                    /* and what is one too low */
#elif defined(__thumb__) || defined(__riscv)
    /* |v|: a branch is cheaper than two limits */
    if (QORNN_RARELY((uint32_t)((v + negative) ^ negative) >> (bits - 1))) {
        v = v < 0 ? -top : top;
    }
    return v;
#else
    return v < -top ? -top : v > top ? top : v;
#endif
}

#endif
