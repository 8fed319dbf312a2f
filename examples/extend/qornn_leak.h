/* Leaky integrators: s += round((x - s) / 2^shift), ties away from zero, as everywhere. */
#ifndef QORNN_LEAK_H
#define QORNN_LEAK_H

#include "qornn.h"

typedef struct {
    qornn_count n;
    uint8_t shift;
} qornn_leak;

QORNN_INLINE void qornn_leak_step(const qornn_leak *p, const int16_t *x, int16_t *s) {
    const int32_t half = (int32_t)1 << (p->shift - 1);
    for (size_t j = 0; j < p->n; j++) {
        const int32_t d = (int32_t)x[j] - s[j];
        const int32_t moved = ((d < 0 ? -d : d) + half) >> p->shift;
        s[j] = (int16_t)(s[j] + (d < 0 ? -moved : moved));
    }
}

#endif
