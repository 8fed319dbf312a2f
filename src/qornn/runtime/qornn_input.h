/* Raw samples to x_i, and sum U_i x_i of one row. */
#ifndef QORNN_INPUT_H
#define QORNN_INPUT_H

#include "qornn.h"

/* x_i of one step; whatever the samples are, they are clamped to the declared range first. */
QORNN_INLINE void qornn_quantize(const qornn_program *p, const int16_t *raw, int16_t *x) {
    const int64_t top = (int64_t)1 << (p->bits_x - 1);
    for (size_t c = 0; c < p->n_i; c++) {
        int16_t sample = raw[c] < p->low ? p->low : raw[c] > p->high ? p->high : raw[c];
        if (!p->plain) {
            const unsigned shift = p->x_shift[c];
            const int64_t half = shift ? (int64_t)1 << (shift - 1) : 0;
            int64_t v = (((int64_t)sample - p->x_offset[c]) * p->x_multiplier[c] + half) >> shift;
            v = v < -top ? -top : v > top - 1 ? top - 1 : v;
            sample = (int16_t)v;
        }
        x[c] = sample;
    }
}

/* U_i[j, c] */
QORNN_INLINE int32_t qornn_U(const qornn_program *p, size_t c, size_t j) {
    const size_t index = c * p->n_h + j;
    if (p->layout == QORNN_BYTES) {
        return p->U_bytes[index];
    }
    const size_t bit = index * p->bits_U;
    const uint8_t *at = p->U_packed + bit / 8;
    const unsigned field = ((unsigned)at[0] | (unsigned)at[1] << 8) >> (bit % 8);
    return (int32_t)(field & ((1u << p->bits_U) - 1u)) - (int32_t)(1u << (p->bits_U - 1));
}

/* sum_c U_i[j, c] x_i[c]; for a code, column `code` of U and no multiplication. */
QORNN_INLINE int32_t qornn_drive(const qornn_program *p, const int16_t *x, size_t code, size_t j) {
    if (p->input == QORNN_CODES) {
        return qornn_U(p, code, j);
    }
    int32_t sum = 0;
    for (size_t c = 0; c < p->n_i; c++) {
        sum += qornn_U(p, c, j) * x[c];
    }
    return sum;
}

#endif
