/* AVX2: rows of bytes, and packed rows of 4 bits; VPMADDWD multiplies 16-bit pairs and adds them. */
#include "qornn_host.h"

#if QORNN_X86
#include <immintrin.h>

#include "../qornn_planes.h"
#include "qornn_wide.h"

#define QORNN_TARGET __attribute__((target("avx2")))

QORNN_TARGET QORNN_INLINE __m256i load(const void *at) { return _mm256_loadu_si256((const __m256i *)at); }

/* The eight sums inside each of four registers, added up. */
QORNN_TARGET QORNN_INLINE void store_sums(const __m256i s[4], int32_t *sums) {
    const __m256i t = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    const __m128i all = _mm_add_epi32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
    _mm_storeu_si128((__m128i *)(void *)sums, all);
}

QORNN_TARGET QORNN_INLINE void bytes_rows(const qornn_host_recurrent *m, size_t j, size_t apart, const int16_t *h,
                                          int32_t *sums) {
    const int8_t *rows = m->W_bytes + j * m->row_bytes;
    const size_t stride = apart * m->row_bytes, units = QORNN_UNITS(m->layer.n_h, 16u);
    __m256i s[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t n = 0; n < units; n += 16) {
        const __m256i state = load(h + n);
#pragma GCC unroll 4
        for (size_t r = 0; r < 4; r++) {
            const __m128i w = _mm_loadu_si128((const __m128i *)(const void *)(rows + r * stride + n));
            s[r] = _mm256_add_epi32(s[r], _mm256_madd_epi16(_mm256_cvtepi8_epi16(w), state));
        }
    }
    store_sums(s, sums);
}

/* spread[i] holds, for every word of a row, the pair of states its field i meets. */
QORNN_TARGET QORNN_INLINE void packed_rows(const qornn_recurrent *p, size_t j, size_t apart, const int16_t *spread,
                                           uint32_t start, int32_t *sums) {
    const size_t words = qornn_plane_words(p->n_h, 4), room = QORNN_UNITS(p->n_h, QORNN_HOST_UNITS) / 4;
    const uint32_t *rows = p->W_planes + j * words;
    const size_t stride = apart * words;
    const __m256i mask = _mm256_set1_epi32(0x000f000f);
    __m256i s[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t n = 0; n < words; n += 8) { /* past a row's end the states are zero */
        const int16_t *at = spread + 2 * n;
        const __m256i h0 = load(at), h1 = load(at + room), h2 = load(at + 2 * room), h3 = load(at + 3 * room);
#pragma GCC unroll 4
        for (size_t r = 0; r < 4; r++) {
            const __m256i w = load(rows + r * stride + n);
            const __m256i a = _mm256_madd_epi16(_mm256_and_si256(w, mask), h0);
            const __m256i b = _mm256_madd_epi16(_mm256_and_si256(_mm256_srli_epi32(w, 4), mask), h1);
            const __m256i c = _mm256_madd_epi16(_mm256_and_si256(_mm256_srli_epi32(w, 8), mask), h2);
            const __m256i d = _mm256_madd_epi16(_mm256_and_si256(_mm256_srli_epi32(w, 12), mask), h3);
            s[r] = _mm256_add_epi32(s[r], _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d)));
        }
    }
    store_sums(s, sums);
    for (size_t r = 0; r < 4; r++) {
        sums[r] = (int32_t)((uint32_t)sums[r] + start); /* unsigned, since it may wrap on the way */
    }
}

/* spread, and -2^(k-1) sum h modulo 2^32. */
QORNN_TARGET static uint32_t spread_states(const qornn_recurrent *p, const qornn_work *w) {
    const size_t units = QORNN_UNITS(p->n_h, QORNN_HOST_UNITS), room = units / 4;
    uint32_t sum = 0;
    for (size_t j = 0; j < units; j++) {
        const int32_t unit = w->h[j];
        sum += (uint32_t)unit;
    }
    for (size_t j = 0; j < units; j += 8) {
        for (size_t i = 0; i < 4; i++) {
            __builtin_memcpy(w->spread + i * room + j / 4, w->h + j + 2 * i, 2 * sizeof *w->h);
        }
    }
    return 0u - (sum << 3);
}

QORNN_TARGET QORNN_INLINE __m256i wide(const int32_t *at) {
    return _mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i *)(const void *)at));
}

/* qornn_next_per_row, four rows at a time. */
QORNN_TARGET static size_t per_row(const qornn_recurrent *p, const qornn_work *w) {
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi64x(1);
    const __m256i top = _mm256_set1_epi64x((1 << (p->bits_h - 1)) - 1);
    const __m256i low_words = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    size_t j = 0;
    for (; j + 4 <= p->n_h; j += 4) {
        __m256i z = _mm256_mul_epi32(wide(p->M_W + j), wide(w->sums + j));
        z = _mm256_add_epi64(z, _mm256_mul_epi32(wide(p->M_U + j), wide(w->drive + j)));
        if (p->M_I) {
            const __m128i own = _mm_loadl_epi64((const __m128i *)(const void *)(w->h + j));
            z = _mm256_add_epi64(z, _mm256_mul_epi32(wide(p->M_I + j), _mm256_cvtepi16_epi64(own)));
        }
        if (p->activation == QORNN_IDENTITY && p->bias_wide) {
            z = _mm256_add_epi64(z, load(p->bias_wide + j));
        }
        const __m256i negative = _mm256_cmpgt_epi64(zero, z);
        __m256i a = z;
        if (p->activation != QORNN_RELU) {
            a = _mm256_sub_epi64(_mm256_xor_si256(z, negative), negative);
            a = p->activation == QORNN_MODRELU ? _mm256_add_epi64(a, load(p->bias_wide + j)) : a;
        }
        a = _mm256_andnot_si256(_mm256_cmpgt_epi64(zero, a), a);
        int32_t bytes;
        __builtin_memcpy(&bytes, p->row_shift + j, 4);
        const __m256i shift = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes));
        const __m256i half = _mm256_sllv_epi64(one, _mm256_sub_epi64(shift, one));
        __m256i v = _mm256_srlv_epi64(_mm256_add_epi64(a, half), shift);
        v = _mm256_blendv_epi8(v, top, _mm256_cmpgt_epi64(v, top));
        if (p->activation != QORNN_RELU) {
            v = _mm256_andnot_si256(_mm256_cmpeq_epi64(z, zero), v);
            v = _mm256_sub_epi64(_mm256_xor_si256(v, negative), negative);
        }
        const __m128i words = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(v, low_words));
        _mm_storel_epi64((__m128i *)(void *)(w->next + j), _mm_packs_epi32(words, words));
    }
    return j;
}

QORNN_TARGET static void step(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    const qornn_host_recurrent *m = (const qornn_host_recurrent *)layer;
    const qornn_recurrent *p = &m->layer;
    const size_t n_h = p->n_h;
    const size_t block = n_h < 4 ? 1 : 4, apart = n_h < 4 ? 0 : 1; /* as in qornn_dense.h */
    const uint32_t start = m->W_bytes ? 0 : spread_states(p, w);
    for (size_t done = 0; done < n_h; done += block) {
        const size_t j = done + block > n_h ? n_h - block : done;
        if (m->W_bytes) {
            bytes_rows(m, j, apart, w->h, w->sums + j);
        } else {
            packed_rows(p, j, apart, w->spread, start, w->sums + j);
        }
    }
    qornn_wide_drive(m, x, code, w->drive);
    qornn_wide_next(p, w, per_row);
}

qornn_host_step qornn_host_avx2(const qornn_host_recurrent *m) {
    const int dense = m->layer.recurrent == QORNN_DENSE;
    const int fits = dense && (m->W_bytes || m->layer.bits_W == 4);
    return fits && qornn_host_has(QORNN_HAS_AVX2) ? step : NULL;
}

#else

qornn_host_step qornn_host_avx2(const qornn_host_recurrent *m) {
    (void)m;
    return NULL;
}

#endif
