/* What a step is given: a code, or raw samples that become x_i. */
#ifndef QORNN_INPUT_H
#define QORNN_INPUT_H

#include "qornn_recurrent.h"

/* Samples: raw is clamped to low..high; x_i is raw itself when plain, or
   clamp(((raw - offset) multiplier + half) >> shift), channel by channel. A step has one sample of every channel, or
   several one after another. */
typedef struct {
    uint32_t n_i;
    uint32_t channels; /* n_i is a multiple of them */
    uint32_t room;     /* for x_i: n_i, and as many zeros as the first layer's kernels read past them */
    uint8_t kind;
    uint8_t bits;
    uint8_t plain;
    uint8_t narrow; /* 32 bits hold every product, and what rounding adds to it */
    int16_t low;
    int16_t high;
    const int32_t *offset;
    const int32_t *multiplier;
    const uint8_t *shift;
} qornn_input;

/* x_i of a sample of channel c within the declared range. */
QORNN_INLINE int16_t qornn_normalised(const qornn_input *p, size_t c, int16_t sample) {
    const int32_t top = (int32_t)1 << (p->bits - 1);
    const unsigned shift = p->shift[c];
    if (p->narrow) {
        const int32_t half = shift ? (int32_t)1 << (shift - 1) : 0;
        const int32_t v = ((sample - p->offset[c]) * p->multiplier[c] + half) >> shift;
        return (int16_t)(v < -top ? -top : v > top - 1 ? top - 1 : v);
    }
    const int64_t half = shift ? (int64_t)1 << (shift - 1) : 0;
    const int64_t v = (((int64_t)sample - p->offset[c]) * p->multiplier[c] + half) >> shift;
    return (int16_t)(v < -top ? -top : v > top - 1 ? top - 1 : v);
}

/* x_i of one step; whatever the samples are, they are clamped to the declared range first. */
QORNN_INLINE void qornn_quantize(const qornn_input *p, const int16_t *raw, int16_t *x) {
    for (size_t i = 0; i < p->n_i; i += p->channels) {
        for (size_t c = 0; c < p->channels; c++) {
            const int16_t given = raw[i + c];
            const int16_t sample = given < p->low ? p->low : given > p->high ? p->high : given;
            x[i + c] = p->plain ? sample : qornn_normalised(p, c, sample);
        }
    }
    for (size_t i = p->n_i; i < p->room; i++) { /* every step: nobody has to clear x before the first */
        x[i] = 0;
    }
}

/* Whether there is such a code. */
QORNN_INLINE int qornn_is_code(const qornn_input *p, int32_t code) { return code >= 0 && (uint32_t)code < p->n_i; }

#endif
