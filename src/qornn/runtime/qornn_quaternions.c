#include "qornn.h"

/* Entry e of a block's quaternion: 1 or 2, and its sign. */
QORNN_INLINE int32_t entry(unsigned code, unsigned e) {
    const int32_t sign = 1 - (int32_t)(code >> e & 1u) * 2;
    return code >> 4 == e ? 2 * sign : sign;
}

void qornn_quaternions(int32_t *z, size_t n, size_t apart, const uint8_t *codes) {
    for (size_t group = 0; group < n; group += 4 * apart) {
        for (int32_t *at = z + group, *const end = at + apart; at != end; at++) {
            const unsigned code = *codes++;
            const int32_t q = entry(code, 0), r = entry(code, 1), s = entry(code, 2), t = entry(code, 3);
            const int32_t a = at[0], b = at[apart], c = at[2 * apart], d = at[3 * apart];
            at[0] = q * a - r * b - s * c - t * d;
            at[apart] = r * a + q * b - t * c + s * d;
            at[2 * apart] = s * a + t * b + q * c - r * d;
            at[3 * apart] = t * a - s * b + r * c + q * d;
        }
    }
}
