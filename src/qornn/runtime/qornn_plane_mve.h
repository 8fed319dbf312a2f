/* Helium: four words of a row at once. Their fields are states a group apart, so the pairs are gathered, once for
   four rows. The tail is predicated: inactive lanes load zero and touch no memory. */
#include <arm_mve.h>

QORNN_INLINE void qornn_plane(unsigned f, const QORNN_FLASH uint32_t *rows, size_t stride, size_t words,
                              const int16_t *h, uint32_t sums[4]) {
    const uint32x4_t mask = vdupq_n_u32(((1u << f) - 1u) * 0x10001u);
    const unsigned pairs = 16u / f;
    const uint32x4_t offsets = vmulq_n_u32(vidupq_n_u32(0, 1), 4u * pairs); /* bytes from a group to the next */
    int32_t s[4];
    for (unsigned r = 0; r < 4; r++) {
        s[r] = (int32_t)sums[r];
    }
    for (size_t n = 0; n < words; n += 4, rows += 4, h += 8 * pairs) {
        const mve_pred16_t live = vctp32q((uint32_t)(words - n));
        uint32x4_t w[4];
        for (unsigned r = 0; r < 4; r++) {
            w[r] = vldrwq_z_u32(rows + r * stride, live);
        }
        for (unsigned i = 0; i < pairs; i++) {
            const uint32x4_t at = vaddq_n_u32(offsets, 4u * i);
            const int16x8_t state =
                vreinterpretq_s16_s32(vldrwq_gather_offset_z_s32((const int32_t *)(const void *)h, at, live));
            for (unsigned r = 0; r < 4; r++) {
                s[r] = vmladavaq_s16(s[r], vreinterpretq_s16_u32(vandq_u32(w[r], mask)), state);
                w[r] = vshlq_r_u32(w[r], -(int32_t)f); /* a negative left shift is a right one */
            }
        }
    }
    for (unsigned r = 0; r < 4; r++) {
        sums[r] = (uint32_t)s[r];
    }
}
