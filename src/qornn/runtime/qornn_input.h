/* What a step is given: a code, or raw samples that become x_i. */
#ifndef QORNN_INPUT_H
#define QORNN_INPUT_H

#include "qornn_recurrent.h"

/* Samples: raw is clamped to low..high; x_i is raw itself when plain, or
   clamp(((raw - offset) multiplier + half) >> shift), channel by channel. A step has one sample of every channel, or
   several one after another. Where they are remembered, -2^15 is none of them (qornn_remember). */
typedef struct {
    qornn_count n_i;      /* samples of a step */
    qornn_count channels; /* n_i is a multiple of them */
    qornn_count room;     /* for x_i and differences, and as many zeros as the first layer's kernels read past them */
    uint8_t kind;
    uint8_t bits;
    uint8_t plain;
    uint8_t narrow;      /* 32 bits hold every product, and what rounding adds to it */
    uint8_t differences; /* n_i companded differences follow the x_i */
    uint8_t hold;        /* -2^15 is a missing sample: the last one stands for it */
    int16_t low;
    int16_t high;
    const QORNN_FLASH int32_t *offset;
    const QORNN_FLASH int32_t *multiplier;
    const QORNN_FLASH uint8_t *shift;
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

QORNN_INLINE int16_t qornn_in_range(const qornn_input *p, int16_t sample) {
    return sample < p->low ? p->low : sample > p->high ? p->high : sample;
}

/* Zeros after the first `n` of x: every step, so that nobody has to clear x before the first. */
QORNN_INLINE void qornn_fill_up(const qornn_input *p, int16_t *x, size_t n) {
    for (size_t i = n; i < p->room; i++) {
        x[i] = 0;
    }
}

/* x_i of one step; whatever the samples are, they are clamped to the declared range first. */
QORNN_INLINE void qornn_quantize(const qornn_input *p, const int16_t *raw, int16_t *x) {
    for (size_t i = 0; i < p->n_i; i += p->channels) {
        for (size_t c = 0; c < p->channels; c++) {
            const int16_t sample = qornn_in_range(p, raw[i + c]);
            x[i + c] = p->plain ? sample : qornn_normalised(p, c, sample);
        }
    }
    qornn_fill_up(p, x, p->n_i);
}

/* Samples that are remembered, one per channel. */
QORNN_INLINE size_t qornn_remembers(const qornn_input *p) { return p->differences || p->hold ? p->channels : 0; }

/* sign(d) ilog|d|: 4 (e + 1) plus the two bits below the leading one, which is bit e; at most 67 of two samples. */
QORNN_INLINE int16_t qornn_companded(int32_t d) {
    uint32_t v = (d < 0 ? 0u - (uint32_t)d : (uint32_t)d) << 2;
    int32_t log = 0;
    QORNN_ROLLED
    for (; v > 7u; v >>= 1) { /* cores without an instruction for the leading bit would call a function */
        log += 4;
    }
    log += (int32_t)v; /* 4 to 7; 0 of no difference */
    return (int16_t)(d < 0 ? -log : log);
}

/* The same with memory: kept[c] is the last sample of channel c with its highest bit turned, and 0 where there was none,
   so that it starts as zero like every state. Whatever is in it, it is clamped to the declared range. */
QORNN_INLINE void qornn_remember(const qornn_input *p, const int16_t *raw, int16_t *kept, int16_t *x) {
    for (size_t i = 0; i < p->n_i; i += p->channels) {
        for (size_t c = 0; c < p->channels; c++) {
            const int16_t given = raw[i + c], before = qornn_in_range(p, (int16_t)(kept[c] ^ INT16_MIN));
            const int none = kept[c] == 0, missing = p->hold && given == INT16_MIN;
            const int16_t sample = missing ? before : qornn_in_range(p, given);
            const int unknown = missing && none;
            x[i + c] = unknown ? (int16_t)0 : p->plain ? sample : qornn_normalised(p, c, sample);
            if (p->differences) {
                x[p->n_i + i + c] = none ? (int16_t)0 : qornn_companded((int32_t)sample - before);
            }
            kept[c] = unknown ? (int16_t)0 : (int16_t)(sample ^ INT16_MIN);
        }
    }
    qornn_fill_up(p, x, p->differences ? 2 * (size_t)p->n_i : p->n_i);
}

/* Whether there is such a code. */
QORNN_INLINE int qornn_is_code(const qornn_input *p, int32_t code) { return code >= 0 && (uint32_t)code < p->n_i; }

#endif
