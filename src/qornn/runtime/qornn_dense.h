/* One step of a layer with a stored W. Called with the address of a `static const` layer, every switch is decided by the
   compiler and only the kernels in use are linked. */
#ifndef QORNN_DENSE_H
#define QORNN_DENSE_H

#include "qornn_drive.h"
#include "qornn_planes.h"
#include "qornn_requant.h"

/* next from h and either x_i or a code. The caller owns the state: two buffers of QORNN_UNITS(n_h, group) int16, zero at the
   start of a sequence; a step reads h, writes next, and the caller swaps them. */
QORNN_INLINE void qornn_dense(const qornn_recurrent *p, const int16_t *x, size_t code, const int16_t *h,
                              int16_t *next) {
    const size_t n_h = p->n_h;
    const size_t words = qornn_row_words(n_h, p->bits_W);
    uint32_t sum_h = 0;
    for (size_t j = 0; j < n_h; j++) {
        const int32_t unit = h[j];
        sum_h += (uint32_t)unit;
    }
    const uint32_t sum_x = qornn_sum_x(p, x);
    /* Fewer than four rows: one at a time, four times over. Otherwise the last four may overlap those before them. */
    const size_t block = n_h < 4 ? 1 : 4;
    for (size_t done = 0; done < n_h; done += block) {
        const size_t j = done + block > n_h ? n_h - block : done;
        uint32_t sums[4], drives[4];
        qornn_packed(p->W_planes + j * words, (block == 4 ? words : 0), p->n_h, p->bits_W, h, sum_h, sums);
        qornn_drives(p, j, block, x, sum_x, code, drives);
        for (size_t r = 0; r < block; r++) {
            next[j + r] = qornn_next(p, j + r, (int32_t)sums[r], (int32_t)drives[r], h[j + r]);
        }
    }
}

#endif
