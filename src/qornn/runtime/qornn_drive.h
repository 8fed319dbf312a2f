/* sum U_i x_i of one row or of four. */
#ifndef QORNN_DRIVE_H
#define QORNN_DRIVE_H

#include "qornn_planes.h"
#include "qornn_recurrent.h"

/* Rows that U has: delay lines take inputs at their first units alone. */
QORNN_INLINE size_t qornn_U_rows(const qornn_recurrent *p) { return p->moves ? p->block : p->n_h; }

/* 32-bit words of a column of U_words. */
QORNN_INLINE size_t qornn_column_words(const qornn_recurrent *p) { return (qornn_U_rows(p) * p->bits_U + 31u) / 32u; }

/* The field of `bits` bits from `bit` on, a signed number. */
QORNN_INLINE int32_t qornn_field(uint32_t word, unsigned bits, unsigned bit) {
    return (int32_t)(word << (32u - bits - bit)) >> (32u - bits);
}

/* U_i[j, c] */
QORNN_INLINE int32_t qornn_U(const qornn_recurrent *p, size_t c, size_t j) {
    if (p->U_words) {
        const size_t bit = j * p->bits_U;
        return qornn_field(p->U_words[c * qornn_column_words(p) + bit / 32], p->bits_U, bit % 32);
    }
    const qornn_bit index = (qornn_bit)c * qornn_U_rows(p) + j;
    const qornn_bit bit = index * p->bits_U;
    const QORNN_FLASH uint8_t *at = p->U_packed + bit / 8;
    const unsigned field = ((unsigned)at[0] | (unsigned)at[1] << 8) >> (bit % 8);
    return (int32_t)(field & ((1u << p->bits_U) - 1u)) - (int32_t)(1u << (p->bits_U - 1));
}

/* sum_c U_i[j, c] x_i[c]; for a code, column `code` of U and no multiplication. */
QORNN_INLINE int32_t qornn_drive(const qornn_recurrent *p, const int16_t *x, size_t code, size_t j) {
    if (p->input == QORNN_CODES) {
        return qornn_U(p, code, j);
    }
    int32_t sum = 0;
    for (size_t c = 0; c < p->n_i; c++) {
        sum += qornn_U(p, c, j) * x[c];
    }
    return sum;
}

/* sum_c x_i[c] where packed rows of U need it, or 0. */
QORNN_INLINE uint32_t qornn_sum_x(const qornn_recurrent *p, const int16_t *x) {
    uint32_t sum = 0;
    for (size_t c = 0; p->U_planes && c < p->n_i; c++) {
        const int32_t sample = x[c];
        sum += (uint32_t)sample;
    }
    return sum;
}

/* qornn_drive of the `block` rows from j on, four or one. */
QORNN_INLINE void qornn_drives(const qornn_recurrent *p, size_t j, size_t block, const int16_t *x, uint32_t sum_x,
                               size_t code, uint32_t drives[4]) {
    const size_t apart = block == 4 ? 1 : 0; /* a kernel takes four: one row alone, four times over */
    if (!p->U_planes) {
        for (size_t r = 0; r < block; r++) {
            drives[r] = (uint32_t)qornn_drive(p, x, code, j + r);
        }
    } else {
        const size_t words = qornn_row_words(p->n_i, p->bits_U);
        qornn_packed(p->U_planes + j * words, apart * words, p->n_i, p->bits_U, x, sum_x, drives);
    }
}

#endif
