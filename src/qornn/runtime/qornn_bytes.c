/* W one byte a weight, rows in natural order. */
#include "qornn.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include <arm_mve.h>

void qornn_bytes(const int8_t *rows, size_t stride, size_t units, const int16_t *h, uint32_t sums[4]) {
    int32_t s[4] = {0, 0, 0, 0};
    for (size_t n = 0; n < units; n += 8, rows += 8, h += 8) {
        const mve_pred16_t live = vctp16q((uint32_t)(units - n));
        const int16x8_t state = vldrhq_z_s16(h, live);
        for (unsigned r = 0; r < 4; r++) {
            s[r] = vmladavaq_s16(s[r], vldrbq_z_s16(rows + r * stride, live), state);
        }
    }
    for (unsigned r = 0; r < 4; r++) {
        sums[r] = (uint32_t)s[r];
    }
}

#elif defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
#include "qornn_dsp.h"

QORNN_INLINE uint32_t four(const int8_t *row, uint32_t even, uint32_t odd, uint32_t sum) {
    uint32_t w;
    __builtin_memcpy(&w, row, sizeof w);
    return qornn_smlad(qornn_sxtb16_ror8(w), odd, qornn_smlad(qornn_sxtb16(w), even, sum));
}

void qornn_bytes(const int8_t *rows, size_t stride, size_t units, const int16_t *h, uint32_t sums[4]) {
    for (unsigned r = 0; r < 4; r += 2) { /* not four: see qornn_plane_dsp.h */
        const int8_t *a = rows + r * stride, *b = a + stride, *const end = a + units;
        const int16_t *state = h;
        uint32_t sum_a = 0, sum_b = 0;
        for (; a != end; a += 4, b += 4, state += 4) {
            const uint32_t h0 = qornn_pair(state), h1 = qornn_pair(state + 2);
            /* SXTB16 takes bytes 0 and 2 apart from 1 and 3, so the states are paired alike. */
            const uint32_t even = (h0 & 0xffffu) | h1 << 16, odd = h0 >> 16 | (h1 & 0xffff0000u);
            sum_a = four(a, even, odd, sum_a);
            sum_b = four(b, even, odd, sum_b);
        }
        sums[r] = sum_a;
        sums[r + 1] = sum_b;
    }
}

#else

void qornn_bytes(const int8_t *rows, size_t stride, size_t units, const int16_t *h, uint32_t sums[4]) {
    for (unsigned r = 0; r < 4; r += 2) {
        const int8_t *a = rows + r * stride, *b = a + stride;
        int32_t sum_a = 0, sum_b = 0; /* signed weights: every partial sum was proved to fit */
        for (size_t n = 0; n < units; n++) {
            sum_a += a[n] * h[n];
            sum_b += b[n] * h[n];
        }
        sums[r] = (uint32_t)sum_a;
        sums[r + 1] = (uint32_t)sum_b;
    }
}

#endif
