/* Rotations: p complex states, each turned by its own lambda = (a + i b) / 2^L at every step, L = bits_lambda - 1.

       acc = (a re - b im) 2^max(-e, 0) + (sum U_i x_i) 2^max(e, 0)    the imaginary part with a im + b re
       re' = saturated(acc / 2^(L + max(-e, 0))), to the nearest, ties away from zero

   32 bits hold every sum: the program was proved not to overflow when it was built. */
#ifndef QORNN_ROTATIONS_H
#define QORNN_ROTATIONS_H

#include "qornn_powers.h"
#include "qornn_rows.h"

typedef struct {
    qornn_count n_i;
    qornn_count pairs;
    uint8_t bits_U;
    uint8_t bits_z;
    uint8_t bits_lambda;
    uint8_t upward; /* no e is below zero: nothing but U is shifted to the left */

    /* U, 2p rows: planes, or where codes select them columns (qornn_rows.h). */
    const QORNN_FLASH uint32_t *U_planes;
    const QORNN_FLASH uint8_t *U_packed;

    /* -a of each pair, so that a byte holds lambda = 1, then b; more than 8 bits in the other. */
    const QORNN_FLASH int8_t *turns;
    const QORNN_FLASH int16_t *turns_wide;
    const QORNN_FLASH int8_t *shift; /* e of each row of U */
} qornn_rotations;

QORNN_INLINE int16_t qornn_turned(const qornn_rotations *p, int32_t turned, uint32_t drive, int32_t e) {
    const uint32_t up = p->upward ? (uint32_t)e : qornn_up(e), down = up - (uint32_t)e;
    const int32_t acc = (int32_t)(((uint32_t)turned << down) + (drive << up));
    return (int16_t)qornn_saturated(qornn_half_away(acc, p->bits_lambda - 1u + down), acc >> 31, p->bits_z);
}

/* One step in place, of x or a code; z holds the p real parts, then the p imaginary ones. */
QORNN_INLINE void qornn_rotations_step(const qornn_rotations *p, const int16_t *x, size_t code, int16_t *z) {
    const size_t pairs = p->pairs, block = qornn_block(pairs);
    const uint32_t sum_x = p->U_planes ? qornn_total(x, p->n_i) : 0;
    QORNN_ROLLED
    for (size_t done = 0; done < pairs; done += block) {
        const size_t j = done + block > pairs ? pairs - block : done; /* the last four may overlap those before them */
        uint32_t real[4], imaginary[4];
        qornn_rows(p->U_planes, p->U_packed, p->bits_U, 2 * pairs, p->n_i, j, block, x, sum_x, code, real);
        qornn_rows(p->U_planes, p->U_packed, p->bits_U, 2 * pairs, p->n_i, pairs + j, block, x, sum_x, code, imaginary);
        QORNN_ROLLED
        for (size_t r = done - j; r < block; r++) {
            const size_t n = j + r;
            const int32_t minus_a = p->turns ? p->turns[n] : p->turns_wide[n];
            const int32_t b = p->turns ? p->turns[pairs + n] : p->turns_wide[pairs + n];
            const int32_t re = z[n], im = z[pairs + n];
            z[n] = qornn_turned(p, -(minus_a * re + b * im), real[r], p->shift[n]);
            z[pairs + n] = qornn_turned(p, b * re - minus_a * im, imaginary[r], p->shift[pairs + n]);
        }
    }
}

#endif
