/* Rotations and mixes with AVX2: half a band of 16 rows in a register. */
#include "qornn_host.h"

#if QORNN_X86
#include <immintrin.h>

#include "qornn_pairs.h"

#define QORNN_TARGET __attribute__((target("avx2")))

QORNN_TARGET QORNN_INLINE __m256i pair_of(const int16_t *x) {
    int32_t two;
    __builtin_memcpy(&two, x, sizeof two);
    return _mm256_set1_epi32(two);
}

QORNN_TARGET QORNN_INLINE __m256i times(const int16_t *pairs, __m256i x) {
    return _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)(const void *)pairs), x);
}

QORNN_TARGET static void product(const int16_t *pairs, size_t rows, const int16_t *x, size_t n, int32_t *sums) {
    const size_t blocks = (n + 1) / 2;
    for (size_t done = 0; done < rows; done += QORNN_BAND, pairs += 2 * QORNN_BAND * blocks, sums += QORNN_BAND) {
        __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
        size_t c = 0;
        for (; c + 2 <= blocks; c += 2) {
            const int16_t *at = pairs + 2 * QORNN_BAND * c;
            const __m256i a = pair_of(x + 2 * c), b = pair_of(x + 2 * c + 2);
            s0 = _mm256_add_epi32(s0, times(at, a));
            s1 = _mm256_add_epi32(s1, times(at + 16, a));
            s2 = _mm256_add_epi32(s2, times(at + 32, b));
            s3 = _mm256_add_epi32(s3, times(at + 48, b));
        }
        if (c < blocks) {
            const __m256i a = pair_of(x + 2 * c);
            s0 = _mm256_add_epi32(s0, times(pairs + 2 * QORNN_BAND * c, a));
            s1 = _mm256_add_epi32(s1, times(pairs + 2 * QORNN_BAND * c + 16, a));
        }
        _mm256_storeu_si256((__m256i *)(void *)sums, _mm256_add_epi32(s0, s2));
        _mm256_storeu_si256((__m256i *)(void *)(sums + 8), _mm256_add_epi32(s1, s3));
    }
}

QORNN_TARGET static void rotations(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    qornn_pairs_rotations((const qornn_host_rotations *)layer, w, x, code, product);
}

QORNN_TARGET static void mix(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    qornn_pairs_mix((const qornn_host_mix_layer *)layer, w, x, code, product);
}

qornn_host_step qornn_host_rotations_avx2(const qornn_host_rotations *m) {
    return m->U_bytes && qornn_host_has(QORNN_HAS_AVX2) ? rotations : NULL;
}

qornn_host_step qornn_host_mix_avx2(const qornn_host_mix_layer *m) {
    return m->C_bytes && qornn_host_has(QORNN_HAS_AVX2) ? mix : NULL;
}

#else

qornn_host_step qornn_host_rotations_avx2(const qornn_host_rotations *m) {
    (void)m;
    return NULL;
}

qornn_host_step qornn_host_mix_avx2(const qornn_host_mix_layer *m) {
    (void)m;
    return NULL;
}

#endif
