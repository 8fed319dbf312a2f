/* Mix: a ReLU of what it reads and, with a skip, of what the layer before was given. It keeps no state.

       acc = (sum C_i x_i) 2^max(apart, 0) + (sum S_i skip_i) 2^max(-apart, 0) + bias
       y   = min(max(acc, 0) / 2^t, 127), to the nearest, ties away from zero; t < 0 shifts to the left */
#ifndef QORNN_MIX_LAYER_H
#define QORNN_MIX_LAYER_H

#include "qornn_powers.h"
#include "qornn_rows.h"

typedef struct {
    qornn_count n_i;
    qornn_count width;
    qornn_count n_skip; /* 0 without a skip */
    uint8_t bits_C;
    uint8_t bits_S;
    uint8_t right; /* every t is at least 1 */

    /* C and S: planes, or where codes select them columns (qornn_rows.h). */
    const QORNN_FLASH uint32_t *C_planes;
    const QORNN_FLASH uint8_t *C_packed;
    const QORNN_FLASH uint32_t *S_planes;
    const QORNN_FLASH uint8_t *S_packed;

    const QORNN_FLASH int16_t *bias;
    const QORNN_FLASH int32_t *bias_wide; /* where 16 bits do not hold them */
    const QORNN_FLASH int8_t *shift;      /* t */
    const QORNN_FLASH int8_t *apart;
} qornn_mix_layer;

QORNN_INLINE int16_t qornn_mix_output(const qornn_mix_layer *p, size_t j, uint32_t sum) {
    const int32_t acc = (int32_t)sum + (p->bias ? p->bias[j] : p->bias_wide[j]), t = p->shift[j];
    int32_t v;
    if (p->right || t > 0) {
        v = ((acc >> (t - 1)) + 1) >> 1; /* below zero where acc is, or zero */
    } else {
        v = acc < 0 ? 0 : (int32_t)((uint32_t)acc << -t);
    }
    return (int16_t)(v < 0 ? 0 : v > 127 ? 127 : v);
}

/* y of x or a code, and of what the layer before was given, x_before or code_before. */
QORNN_INLINE void qornn_mix_layer_step(const qornn_mix_layer *p, const int16_t *x, size_t code, const int16_t *x_before,
                                       size_t code_before, int16_t *y) {
    const size_t width = p->width, block = qornn_block(width);
    const uint32_t sum_x = p->C_planes ? qornn_total(x, p->n_i) : 0;
    const uint32_t sum_before = p->S_planes ? qornn_total(x_before, p->n_skip) : 0;
    QORNN_ROLLED
    for (size_t done = 0; done < width; done += block) {
        const size_t j = done + block > width ? width - block : done; /* the last four may overlap those before them */
        uint32_t sums[4], beside[4];
        qornn_rows(p->C_planes, p->C_packed, p->bits_C, width, p->n_i, j, block, x, sum_x, code, sums);
        if (p->n_skip) {
            qornn_rows(p->S_planes, p->S_packed, p->bits_S, width, p->n_skip, j, block, x_before, sum_before,
                       code_before, beside);
        }
        for (size_t r = 0; r < block; r++) {
            uint32_t sum = sums[r];
            if (p->n_skip) {
                const int32_t apart = p->apart[j + r];
                sum = (sum << qornn_up(apart)) + (beside[r] << qornn_down(apart));
            }
            y[j + r] = qornn_mix_output(p, j + r, sum);
        }
    }
}

#endif
