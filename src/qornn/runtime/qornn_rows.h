/* A matrix of k bits times what a layer reads: numbers, or a code that selects a column.

   It lies row by row in planes (qornn_planes.h); where a code selects columns, column by column as one stream of fields
   w + 2^(k-1), lowest bit first, with one byte to spare after the end. The other pointer is null. */
#ifndef QORNN_ROWS_H
#define QORNN_ROWS_H

#include "qornn_planes.h"

#if QORNN_ASSEMBLY && defined(__ARM_FEATURE_DSP)
#include "qornn_dsp.h"
#endif

/* sum x, which planes need. */
QORNN_INLINE uint32_t qornn_total(const int16_t *x, size_t n) {
    uint32_t sum = 0;
    size_t i = 0;
#if QORNN_ASSEMBLY && defined(__ARM_FEATURE_DSP)
    QORNN_ROLLED
    for (; i < n / 4 * 4; i += 4) { /* not i + 4 <= n: GCC would warn of the loop below */
        sum = qornn_smlad(qornn_pair(x + i), 0x10001u, sum);
        sum = qornn_smlad(qornn_pair(x + i + 2), 0x10001u, sum);
    }
#endif
    QORNN_ROLLED
    for (; i < n; i++) {
        const int32_t number = x[i];
        sum += (uint32_t)number;
    }
    return sum;
}

/* Rows that are worked on at once, of at least `rows`: four, or where there are fewer one. */
QORNN_INLINE size_t qornn_block(size_t rows) { return rows < 4 ? 1 : 4; }

/* The sums of the `block` rows from j on. A kernel takes four: one row alone, four times over. */
QORNN_INLINE void qornn_rows(const QORNN_FLASH uint32_t *planes, const QORNN_FLASH uint8_t *columns, unsigned bits,
                             size_t rows, size_t n, size_t j, size_t block, const int16_t *x, uint32_t sum_x,
                             size_t code, uint32_t sums[4]) {
    if (planes) {
        const size_t words = qornn_row_words(n, bits);
        qornn_packed(planes + j * words, block == 4 ? words : 0, n, bits, x, sum_x, sums);
        return;
    }
    for (size_t r = 0; r < block; r++) {
        const qornn_bit bit = ((qornn_bit)code * rows + j + r) * bits;
        const QORNN_FLASH uint8_t *at = columns + bit / 8;
        const uint32_t field = ((uint32_t)at[0] | (uint32_t)at[1] << 8) >> (bit % 8);
        sums[r] = (field & ((1u << bits) - 1u)) - (1u << (bits - 1));
    }
}

#endif
