/* What is read out of the last layer: y = V h_i + b_o, float32, or V of at most 8 bits and 32-bit sums.
   Of the mean of all steps, y = V sum h_i + T b_o: the largest of them needs no division. */
#ifndef QORNN_READOUT_H
#define QORNN_READOUT_H

#include "qornn.h"

enum { QORNN_FLOAT, QORNN_INT };            /* kind */
enum { QORNN_LAST, QORNN_ALL, QORNN_MEAN }; /* steps */

typedef struct {
    qornn_count n_o;
    qornn_count n_h;
    uint8_t kind;
    uint8_t steps;
    uint8_t relu;
    uint8_t mix; /* S h is read out, S Sylvester's matrix, n_h a power of 2: V or V_packed then lie column by column */
    uint8_t bits_V;     /* V_packed: one stream of fields v + 2^(bits_V-1) row by row */
    uint32_t steps_max; /* MEAN: after so many steps the sums and T are halved */
    float scale;
    const QORNN_FLASH float *V; /* row by row */
    const QORNN_FLASH float *b_o;
    const QORNN_FLASH int8_t *V_int;
    const QORNN_FLASH uint8_t *V_packed;
    const QORNN_FLASH int32_t *b_o_int;
} qornn_readout;

/* y (n_o) of a state, of floats. */
QORNN_INLINE void qornn_read_float(const qornn_readout *p, const int16_t *h, float *y) {
    qornn_readout_float(p->V, p->b_o, p->scale, p->n_o, p->n_h, p->relu, h, y);
}

/* y (n_o) of a state, of integers. */
QORNN_INLINE void qornn_read_int(const qornn_readout *p, const int16_t *h, int32_t *y) {
    if (p->V_packed) {
        qornn_readout_packed(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, p->relu, h, y);
    } else {
        qornn_readout_int(p->V_int, p->b_o_int, p->n_o, p->n_h, p->relu, h, y);
    }
}

/* The same of states kept in 32 bits. */
QORNN_INLINE void qornn_read_float_wide(const qornn_readout *p, const int32_t *h, float *y) {
    qornn_readout_float_wide(p->V, p->b_o, p->scale, p->n_o, p->n_h, p->relu, h, y);
}

QORNN_INLINE void qornn_read_int_wide(const qornn_readout *p, const int32_t *h, int32_t *y) {
    qornn_readout_packed_wide(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, p->relu, h, y);
}

/* The same four where S h is read out: mix is set. */
QORNN_INLINE void qornn_read_mix_float(const qornn_readout *p, const int16_t *h, float *y) {
    qornn_readout_mix_float(p->V, p->b_o, p->scale, p->n_o, p->n_h, p->relu, h, NULL, y);
}

QORNN_INLINE void qornn_read_mix_int(const qornn_readout *p, const int16_t *h, int32_t *y) {
    qornn_readout_mix_packed(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, p->relu, h, NULL, y);
}

QORNN_INLINE void qornn_read_mix_float_wide(const qornn_readout *p, const int32_t *h, float *y) {
    qornn_readout_mix_float(p->V, p->b_o, p->scale, p->n_o, p->n_h, p->relu, NULL, h, y);
}

QORNN_INLINE void qornn_read_mix_int_wide(const qornn_readout *p, const int32_t *h, int32_t *y) {
    qornn_readout_mix_packed(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, p->relu, NULL, h, y);
}

/* One step more of a mean: the sums (n_h) and their count T. Both are halved in time, so a stream may run for ever. */
QORNN_INLINE void qornn_mean_add(const qornn_readout *p, const int16_t *h, int32_t *sums, uint32_t *count) {
    const size_t n_h = p->n_h;
    const int32_t hidden = p->relu ? -1 : 0; /* whether what is negative is not seen */
    const int full = *count == p->steps_max;
    *count = (full ? *count / 2u : *count) + 1u;
    if (QORNN_RARELY(full)) {
        QORNN_ROLLED
        for (size_t j = 0; j < n_h; j++) {
            sums[j] = (sums[j] + 1) >> 1;
        }
    }
    for (size_t j = 0; j < n_h; j++) {
        const int32_t unit = h[j];
        sums[j] += unit & ~(unit >> 31 & hidden);
    }
}

/* y (n_o) of these sums. */
QORNN_INLINE void qornn_read_mean(const qornn_readout *p, const int32_t *sums, uint32_t count, int32_t *y) {
    qornn_readout_packed_wide(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, 0, sums, y);
    for (size_t o = 0; o < p->n_o; o++) {
        y[o] += p->b_o_int[o] * ((int32_t)count - 1); /* one was added with V */
    }
}

#endif
