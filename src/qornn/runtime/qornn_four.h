/* What the assembly of a plane is given, through r0, and what it gives back. */
#ifndef QORNN_FOUR_H
#define QORNN_FOUR_H

#include "qornn.h"

typedef struct {
    const uint32_t *rows;
    uint32_t stride;  /* in bytes */
    const int16_t *h; /* 8 */
    const int16_t *end;
    uint32_t mask; /* 16 */
    uint32_t sums[4];
} qornn_four;

QORNN_INLINE qornn_four qornn_four_rows(unsigned f, const uint32_t *rows, size_t stride, size_t words, const int16_t *h) {
    qornn_four four;
    four.rows = rows;
    four.stride = (uint32_t)(4 * stride);
    four.h = h;
    four.end = h + words * (32 / f);
    four.mask = ((1u << f) - 1u) * 0x10001u;
    return four;
}

QORNN_INLINE void qornn_four_sums(const qornn_four *four, unsigned shift, uint32_t sums[4]) {
    for (unsigned r = 0; r < 4; r++) {
        sums[r] += four->sums[r] << shift;
    }
}

#endif
