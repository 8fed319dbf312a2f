/* What a step is given: a code, or raw samples that become x_i. */
#ifndef QORNN_INPUT_H
#define QORNN_INPUT_H

#include "qornn_recurrent.h"

/* Samples: raw is clamped to low..high; x_i is raw itself when plain, or
   clamp(((raw - offset) multiplier + half) >> shift), channel by channel. */
typedef struct {
    uint32_t n_i;
    uint32_t room; /* for x_i: n_i, and as many zeros as the first layer's kernels read past them */
    uint8_t kind;
    uint8_t bits;
    uint8_t plain;
    int16_t low;
    int16_t high;
    const int32_t *offset;
    const int32_t *multiplier;
    const uint8_t *shift;
} qornn_input;

/* x_i of one step; whatever the samples are, they are clamped to the declared range first. */
QORNN_INLINE void qornn_quantize(const qornn_input *p, const int16_t *raw, int16_t *x) {
    const int64_t top = (int64_t)1 << (p->bits - 1);
    for (size_t c = 0; c < p->n_i; c++) {
        int16_t sample = raw[c] < p->low ? p->low : raw[c] > p->high ? p->high : raw[c];
        if (!p->plain) {
            const unsigned shift = p->shift[c];
            const int64_t half = shift ? (int64_t)1 << (shift - 1) : 0;
            int64_t v = (((int64_t)sample - p->offset[c]) * p->multiplier[c] + half) >> shift;
            v = v < -top ? -top : v > top - 1 ? top - 1 : v;
            sample = (int16_t)v;
        }
        x[c] = sample;
    }
    for (size_t c = p->n_i; c < p->room; c++) { /* every step: nobody has to clear x before the first */
        x[c] = 0;
    }
}

/* Whether there is such a code. */
QORNN_INLINE int qornn_is_code(const qornn_input *p, int32_t code) { return code >= 0 && (uint32_t)code < p->n_i; }

#endif
