/* Plain C99, for machines with few registers and one multiplication: no field is masked. The word shifted right,
   t_i = word >> f i, still holds the later fields, u_i = t_i - 2^f t_(i+1), so that

       sum u_i s_i = sum t_i (s_i - 2^f s_(i-1))      modulo 2^32

   with s_i the state that field i meets: the even units for the low half, then the odd ones. What is subtracted
   depends on no row, so it is worked out once for four. */
QORNN_INLINE void qornn_plane(unsigned f, const QORNN_FLASH uint32_t *rows, size_t stride, size_t words,
                              const int16_t *h, uint32_t sums[4]) {
    const unsigned pairs = 16u / f;
    uint32_t sum[4] = {0, 0, 0, 0};
    for (size_t n = 0; n < words; n++, rows++, h += 2 * pairs) {
        uint32_t s[32];
        int32_t before = 0;
        for (unsigned i = 0; i < 2 * pairs; i++) {
            const int32_t unit = i < pairs ? h[2 * i] : h[2 * (i - pairs) + 1];
            s[i] = (uint32_t)(unit - before * (1 << f));
            before = unit;
        }
        for (unsigned r = 0; r < 4; r += 2) {
            const uint32_t a = rows[r * stride], b = rows[(r + 1) * stride];
            uint32_t sum_a = sum[r], sum_b = sum[r + 1];
            for (unsigned i = 0; i < 2 * pairs; i++) {
                sum_a += (a >> f * i) * s[i];
                sum_b += (b >> f * i) * s[i];
            }
            sum[r] = sum_a;
            sum[r + 1] = sum_b;
        }
    }
    for (unsigned r = 0; r < 4; r++) {
        sums[r] += sum[r];
    }
}
