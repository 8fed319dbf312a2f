/* AVX-512 VNNI: VPDPBUSD multiplies unsigned bytes by signed ones, four to a sum. So h + 2^15 = 256 hi + lo in two
   unsigned bytes, W in signed ones, and the 2^15 is taken back from the sums W_start begins with.
   Registers hold 16 rows each and the states are broadcast: no sum has to be added up across a register.
   Full masks: gcc 12 warns of an uninitialized variable inside the plain forms of some intrinsics. */
#include "qornn_host.h"

#if QORNN_X86
#include <immintrin.h>

#include "qornn_wide.h"

#define QORNN_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
enum { BANDS = 12 }; /* of 16 rows at once: two registers of sums each, of 32 */

/* lo and hi bytes of h + 2^15. */
QORNN_TARGET static void split(const int16_t *h, size_t units, uint8_t *lo, uint8_t *hi) {
    const __mmask32 all = 0xffffffffu;
    const __m512i sign = _mm512_set1_epi16((short)0x8000);
    for (size_t j = 0; j < units; j += 32) {
        const __m512i v = _mm512_xor_si512(_mm512_loadu_si512(h + j), sign);
        _mm256_storeu_si256((__m256i *)(void *)(lo + j), _mm512_maskz_cvtepi16_epi8(all, v));
        _mm256_storeu_si256((__m256i *)(void *)(hi + j), _mm512_maskz_cvtepi16_epi8(all, _mm512_srli_epi16(v, 8)));
    }
}

/* The sums of `bands` times 16 rows; `bands` is constant where this is inlined, or the sums would leave the registers. */
QORNN_TARGET QORNN_INLINE void bands_sums(size_t bands, const int8_t *W, const int32_t *start, size_t groups,
                                          const uint8_t *lo, const uint8_t *hi, int32_t *sums) {
    __m512i sum_lo[BANDS], sum_hi[BANDS];
#pragma GCC unroll 12
    for (size_t i = 0; i < bands; i++) {
        sum_lo[i] = _mm512_loadu_si512(start + 16 * i);
        sum_hi[i] = _mm512_setzero_si512();
    }
    for (size_t g = 0; g < groups; g++) {
        int32_t four_lo, four_hi;
        __builtin_memcpy(&four_lo, lo + 4 * g, 4);
        __builtin_memcpy(&four_hi, hi + 4 * g, 4);
        const __m512i h_lo = _mm512_set1_epi32(four_lo), h_hi = _mm512_set1_epi32(four_hi);
#pragma GCC unroll 12
        for (size_t i = 0; i < bands; i++) {
            const __m512i w = _mm512_loadu_si512(W + (i * groups + g) * 64);
            sum_lo[i] = _mm512_dpbusd_epi32(sum_lo[i], h_lo, w);
            sum_hi[i] = _mm512_dpbusd_epi32(sum_hi[i], h_hi, w);
        }
    }
#pragma GCC unroll 12
    for (size_t i = 0; i < bands; i++) {
        _mm512_storeu_si512(sums + 16 * i, _mm512_add_epi32(sum_lo[i], _mm512_maskz_slli_epi32(0xffffu, sum_hi[i], 8)));
    }
}

QORNN_TARGET static void recurrent_sums(const qornn_host_recurrent *m, const qornn_work *w) {
    const size_t n_h = m->layer.n_h, groups = (n_h + 3) / 4, all = (n_h + 15) / 16;
    const size_t passes = (all + BANDS - 1) / BANDS;
    uint8_t *lo = (uint8_t *)w->spread, *hi = lo + QORNN_UNITS(n_h, QORNN_HOST_UNITS);
    split(w->h, QORNN_UNITS(n_h, QORNN_HOST_UNITS), lo, hi);
    size_t done = 0;
    for (size_t pass = 0; pass < passes; pass++) {
        /* even shares: a thin one waits on latency */
        const size_t bands = (all - done + passes - pass - 1) / (passes - pass);
        const int8_t *W = m->W_blocks + done * groups * 64;
        const int32_t *start = m->W_start + done * 16;
        int32_t *sums = w->sums + done * 16;
        switch (bands) {
#define QORNN_CASE(n)                                  \
    case n:                                            \
        bands_sums(n, W, start, groups, lo, hi, sums); \
        break;
            QORNN_CASE(1)
            QORNN_CASE(2)
            QORNN_CASE(3)
            QORNN_CASE(4)
            QORNN_CASE(5)
            QORNN_CASE(6)
            QORNN_CASE(7)
            QORNN_CASE(8)
            QORNN_CASE(9)
            QORNN_CASE(10)
            QORNN_CASE(11)
            default:
                bands_sums(12, W, start, groups, lo, hi, sums);
        }
        done += bands;
    }
}

QORNN_TARGET QORNN_INLINE __m512i wide(const int32_t *at) {
    return _mm512_maskz_cvtepi32_epi64(0xff, _mm256_loadu_si256((const __m256i *)(const void *)at));
}

/* qornn_next_per_row, eight rows at a time. */
QORNN_TARGET static size_t per_row(const qornn_recurrent *p, const qornn_work *w) {
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi64(1);
    const __m512i top = _mm512_set1_epi64((1 << (p->bits_h - 1)) - 1);
    const __mmask8 all = 0xff;
    size_t j = 0;
    for (; j + 8 <= p->n_h; j += 8) {
        __m512i z = _mm512_maskz_mul_epi32(all, wide(p->M_W + j), wide(w->sums + j));
        z = _mm512_add_epi64(z, _mm512_maskz_mul_epi32(all, wide(p->M_U + j), wide(w->drive + j)));
        if (p->M_I) {
            const __m128i own = _mm_loadu_si128((const __m128i *)(const void *)(w->h + j));
            z = _mm512_add_epi64(z,
                                 _mm512_maskz_mul_epi32(all, wide(p->M_I + j), _mm512_maskz_cvtepi16_epi64(all, own)));
        }
        if (p->activation == QORNN_IDENTITY && p->bias_wide) {
            z = _mm512_add_epi64(z, _mm512_loadu_si512(p->bias_wide + j));
        }
        __m512i a = z;
        if (p->activation != QORNN_RELU) {
            a = _mm512_maskz_abs_epi64(all, z);
            a = p->activation == QORNN_MODRELU ? _mm512_add_epi64(a, _mm512_loadu_si512(p->bias_wide + j)) : a;
        }
        a = _mm512_maskz_max_epi64(all, a, zero);
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(p->row_shift + j));
        const __m512i shift = _mm512_maskz_cvtepu8_epi64(all, bytes);
        const __m512i half = _mm512_maskz_sllv_epi64(all, one, _mm512_sub_epi64(shift, one));
        __m512i v = _mm512_maskz_min_epi64(all, _mm512_maskz_srlv_epi64(all, _mm512_add_epi64(a, half), shift), top);
        if (p->activation != QORNN_RELU) {
            v = _mm512_maskz_mov_epi64(_mm512_cmpneq_epi64_mask(z, zero), v);
            v = _mm512_mask_sub_epi64(v, _mm512_cmplt_epi64_mask(z, zero), zero, v);
        }
        _mm_storeu_si128((__m128i *)(void *)(w->next + j), _mm512_maskz_cvtepi64_epi16(all, v));
    }
    return j;
}

QORNN_TARGET static void step(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    const qornn_host_recurrent *m = (const qornn_host_recurrent *)layer;
    recurrent_sums(m, w);
    qornn_wide_drive(m, x, code, w->drive);
    qornn_wide_next(&m->layer, w, per_row);
}

qornn_host_step qornn_host_vnni(const qornn_host_recurrent *m) {
    return qornn_host_has(QORNN_HAS_VNNI) && m->W_blocks ? step : NULL; /* dense, one byte a weight */
}

#else

qornn_host_step qornn_host_vnni(const qornn_host_recurrent *m) {
    (void)m;
    return NULL;
}

#endif
