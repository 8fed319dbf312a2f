/* Packed rows of W, or of U with x in place of h: which planes k bits are made of, and the product of four rows.

   w + 2^(k-1), unsigned, is split low bits first into planes of f = 1, 2, 4 or 8 bits, at most one of each:

       k      2    3      4    5      6      7        8
       f      2    2,1    4    4,1    4,2    4,2,1    8

   A row is its planes one after another, each in whole 32-bit words of 32/f weights (qornn_plane.h). So a row
   takes exactly k bits per weight and its padding, and

       sum w h = sum over planes 2^(bits before it) (plane . h) - 2^(k-1) sum h

   Partial sums of unsigned weights may pass 2^31: all of it is modulo 2^32, where the final value is exact. */
#ifndef QORNN_PLANES_H
#define QORNN_PLANES_H

#include "qornn.h"

QORNN_INLINE size_t qornn_plane_words(size_t n_h, unsigned f) { return (n_h * f + 31u) / 32u; }

/* 32-bit words of a row. */
QORNN_INLINE size_t qornn_row_words(size_t n_h, unsigned k) {
    return (k == 8u ? qornn_plane_words(n_h, 8) : 0) + (k >= 4u && k < 8u ? qornn_plane_words(n_h, 4) : 0) +
           (k < 8u && (k & 2u) ? qornn_plane_words(n_h, 2) : 0) + (k < 8u && (k & 1u) ? qornn_plane_words(n_h, 1) : 0);
}

QORNN_INLINE void qornn_raise(uint32_t sums[4], unsigned bits) {
    for (unsigned r = 0; bits && r < 4; r++) {
        sums[r] <<= bits;
    }
}

/* Four rows, `stride` words apart. The highest plane first: what is there is shifted to the left before the next. */
QORNN_INLINE void qornn_packed(const QORNN_FLASH uint32_t *rows, size_t stride, size_t n_h, unsigned k,
                               const int16_t *h, uint32_t sum_h, uint32_t sums[4]) {
    const size_t words4 = k & 4u ? qornn_plane_words(n_h, 4) : 0, words2 = k & 2u ? qornn_plane_words(n_h, 2) : 0;
    const unsigned highest = k == 8u ? 8u : k & 1u ? 1u : k & 2u ? 2u : 4u;
    sums[0] = sums[1] = sums[2] = sums[3] = 0u - (sum_h << (highest - 1u));
    if (k == 8u) {
        qornn_plane8(rows, stride, qornn_plane_words(n_h, 8), h, sums);
        return;
    }
    if (k & 1u) {
        qornn_plane1(rows + words4 + words2, stride, qornn_plane_words(n_h, 1), h, sums);
    }
    if (k & 2u) {
        qornn_raise(sums, highest == 2u ? 0 : 2);
        qornn_plane2(rows + words4, stride, words2, h, sums);
    }
    if (k & 4u) {
        qornn_raise(sums, highest == 4u ? 0 : 4);
        qornn_plane4(rows, stride, words4, h, sums);
    }
}

#endif
