/* Rotations and mixes with AVX-512 VNNI: a band of 16 rows in a register, and VPDPWSSD, which multiplies pairs and adds. */
#include "qornn_host.h"

#if QORNN_X86
#include <immintrin.h>

#include "qornn_pairs.h"

#define QORNN_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,prefer-vector-width=512")))

QORNN_TARGET QORNN_INLINE __m512i plus(__m512i sum, const int16_t *pairs, const int16_t *x) {
    int32_t two;
    __builtin_memcpy(&two, x, sizeof two);
    return _mm512_dpwssd_epi32(sum, _mm512_loadu_si512(pairs), _mm512_set1_epi32(two));
}

QORNN_TARGET static void product(const int16_t *pairs, size_t rows, const int16_t *x, size_t n, int32_t *sums) {
    const size_t blocks = (n + 1) / 2;
    for (size_t done = 0; done < rows; done += QORNN_BAND, pairs += 2 * QORNN_BAND * blocks, sums += QORNN_BAND) {
        __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
        size_t c = 0;
        for (; c + 4 <= blocks; c += 4) { /* four sums: one would wait for itself */
            const int16_t *at = pairs + 2 * QORNN_BAND * c;
            s0 = plus(s0, at, x + 2 * c);
            s1 = plus(s1, at + 32, x + 2 * c + 2);
            s2 = plus(s2, at + 64, x + 2 * c + 4);
            s3 = plus(s3, at + 96, x + 2 * c + 6);
        }
        for (; c < blocks; c++) {
            s0 = plus(s0, pairs + 2 * QORNN_BAND * c, x + 2 * c);
        }
        _mm512_storeu_si512(sums, _mm512_add_epi32(_mm512_add_epi32(s0, s1), _mm512_add_epi32(s2, s3)));
    }
}

QORNN_TARGET static void rotations(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    qornn_pairs_rotations((const qornn_host_rotations *)layer, w, x, code, product);
}

QORNN_TARGET static void mix(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    qornn_pairs_mix((const qornn_host_mix_layer *)layer, w, x, code, product);
}

static int here(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

qornn_host_step qornn_host_rotations_vnni(const qornn_host_rotations *m) {
    return m->U_bytes && here() ? rotations : NULL;
}

qornn_host_step qornn_host_mix_vnni(const qornn_host_mix_layer *m) {
    return m->C_bytes && here() ? mix : NULL;
}

#else

qornn_host_step qornn_host_rotations_vnni(const qornn_host_rotations *m) {
    (void)m;
    return NULL;
}

qornn_host_step qornn_host_mix_vnni(const qornn_host_mix_layer *m) {
    (void)m;
    return NULL;
}

#endif
