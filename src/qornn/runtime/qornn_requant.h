/* From the two sums of a row to its next state: the activation and the forms of the requantization. */
#ifndef QORNN_REQUANT_H
#define QORNN_REQUANT_H

#include "qornn_powers.h"
#include "qornn_recurrent.h"

/* min((a multiplier + 2^(shift-1)) >> shift, top) */
QORNN_INLINE int32_t qornn_by_multiplier(uint32_t a, uint32_t multiplier, unsigned shift, int32_t top) {
    const uint64_t v = (((uint64_t)a * multiplier >> (shift - 1)) + 1u) >> 1; /* as in qornn_next_per_row */
    return v > (uint64_t)top ? top : (int32_t)v;
}

/* How many of the thresholds a reaches. */
QORNN_INLINE int32_t qornn_by_thresholds(int32_t a, const QORNN_FLASH int32_t *thresholds, int32_t count) {
    int32_t low = 0;
    while (low < count) {
        const int32_t middle = low + (count - low) / 2;
        if (thresholds[middle] <= a) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

/* min((a + 2^(shift-1)) >> shift, top), for factors that are a power of two. */
QORNN_INLINE int32_t qornn_by_shift(uint32_t a, unsigned shift, int32_t top) {
    const uint32_t v = (a + (shift ? (uint32_t)1 << (shift - 1) : 0u)) >> shift;
    return v > (uint32_t)top ? top : (int32_t)v;
}

/* (z + half) >> shift of a signed z, ties away from zero, within -top..top, top = 2^(bits-1) - 1. */
QORNN_INLINE int32_t qornn_by_signed_shift(int32_t z, unsigned shift, unsigned bits) {
    const int32_t negative = z >> 31;
    return qornn_saturated(shift ? (z + ((int32_t)1 << (shift - 1)) + negative) >> shift : z, negative, bits);
}

/* Scheme paper: one factor for all rows, from z = 2^shift_W sum W_i h_i + 2^shift_U sum U_i x_i. */
QORNN_INLINE int32_t qornn_next_paper(const qornn_recurrent *p, size_t j, int32_t z) {
    const int32_t top = (int32_t)((1u << (p->bits_h - 1)) - 1u);
    if (p->activation == QORNN_IDENTITY && p->bias) {
        z += p->bias[j];
    }
    if (p->activation == QORNN_IDENTITY && p->requant == QORNN_SHIFT) {
        return qornn_by_signed_shift(z, p->shift, p->bits_h);
    }
    int32_t a = z;
    if (p->activation != QORNN_RELU) {
        a = z < 0 ? -z : z;
        a += p->activation == QORNN_MODRELU ? p->bias[j] : 0;
    }
    a = a < 0 ? 0 : a;
    int32_t v;
    if (p->requant == QORNN_MULTIPLIER) {
        v = qornn_by_multiplier((uint32_t)a, p->multiplier, p->shift, top);
    } else if (p->requant == QORNN_SHIFT) {
        v = qornn_by_shift((uint32_t)a, p->shift, top);
    } else {
        v = qornn_by_thresholds(a, p->thresholds, top);
    }
    return p->activation == QORNN_RELU || z > 0 ? v : z < 0 ? -v : 0;
}

/* Scheme per-row: v = M_W sum W_i h_i + M_U sum U_i x_i (+ M_I h_i[j]), below 2^62 by the program's own proof. */
QORNN_INLINE int32_t qornn_next_per_row(const qornn_recurrent *p, size_t j, int32_t sum, int32_t drive, int32_t own) {
    const int64_t top = (int64_t)((1u << (p->bits_h - 1)) - 1u);
    const size_t row = p->alike ? 0 : j;
    const unsigned shift = p->row_shift[row];
    int64_t z = (int64_t)p->M_W[row] * sum + (int64_t)p->M_U[row] * drive;
    if (p->M_I) {
        z += (int64_t)p->M_I[row] * own;
    }
    if (p->activation == QORNN_IDENTITY && p->bias_wide) {
        z += p->bias_wide[j];
    }
    int64_t a = z;
    if (p->activation != QORNN_RELU) {
        a = z < 0 ? -z : z;
        a += p->activation == QORNN_MODRELU ? p->bias_wide[j] : 0;
    }
    a = a < 0 ? 0 : a;
    /* (a + 2^(s-1)) >> s, with one variable shift of 64 bits instead of two: they are dear on 32-bit machines. */
    a = (int64_t)(((uint64_t)a >> (shift - 1)) + 1u) >> 1;
    const int32_t v = (int32_t)(a > top ? top : a);
    return p->activation == QORNN_RELU || z > 0 ? v : z < 0 ? -v : 0;
}

/* The next state of unit j, from sum W_i h_i, sum U_i x_i and its own state. */
QORNN_INLINE int16_t qornn_next(const qornn_recurrent *p, size_t j, int32_t sum, int32_t drive, int32_t own) {
    if (p->requant == QORNN_PER_ROW) {
        return (int16_t)qornn_next_per_row(p, j, sum, drive, own);
    }
    /* Unsigned: shifting a negative number left is undefined; the sum itself was proved to fit. */
    return (int16_t)qornn_next_paper(p, j, (int32_t)(((uint32_t)sum << p->shift_W) + ((uint32_t)drive << p->shift_U)));
}

#endif
