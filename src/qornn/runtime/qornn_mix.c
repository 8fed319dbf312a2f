#include "qornn_transform.h"

/* Four states, of 16 or of 32 bits. */
QORNN_INLINE const void *four(const void *h, int wide, int32_t *a, int32_t *b, int32_t *c, int32_t *d) {
    if (wide) {
        const int32_t *const at = (const int32_t *)h;
        *a = at[0], *b = at[1], *c = at[2], *d = at[3];
        return at + 4;
    }
    const int16_t *const at = (const int16_t *)h;
    *a = at[0], *b = at[1], *c = at[2], *d = at[3];
    return at + 4;
}

/* 1 or -1: entry (i, j) of S is -1 to the number of bits that i and j have in common. */
QORNN_INLINE int32_t entry(size_t i, size_t j) {
    uint32_t common = (uint32_t)(i & j);
    common ^= common >> 16;
    common ^= common >> 8;
    common ^= common >> 4;
    return 1 - (int32_t)(0x6996u >> (common & 15u) & 1u) * 2; /* bit m of 0x6996: whether m has an odd number of bits */
}

/* Four units from i on and four from j on, multiples of 4, share one entry but for their last two bits: S of four. */
void qornn_mix(const int16_t *narrow, const int32_t *wide, size_t n_h, int relu, size_t j, int32_t seen[4]) {
    const void *h = wide ? (const void *)wide : (const void *)narrow;
    int32_t sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    if (n_h == 2) {
        const int32_t a = wide ? wide[0] : narrow[0], b = wide ? wide[1] : narrow[1];
        sum0 = a + b;
        sum1 = a - b;
    }
    QORNN_ROLLED
    for (size_t i = 0; i + 4 <= n_h; i += 4) {
        int32_t a, b, c, d;
        h = four(h, wide != NULL, &a, &b, &c, &d);
        qornn_mix4(&a, &b, &c, &d);
        const int32_t sign = entry(i, j);
        sum0 += a * sign;
        sum1 += b * sign;
        sum2 += c * sign;
        sum3 += d * sign;
    }
    const int32_t hidden = relu ? -1 : 0;
    seen[0] = sum0 & ~(sum0 >> 31 & hidden);
    seen[1] = sum1 & ~(sum1 >> 31 & hidden);
    seen[2] = sum2 & ~(sum2 >> 31 & hidden);
    seen[3] = sum3 & ~(sum3 >> 31 & hidden);
}
