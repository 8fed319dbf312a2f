/* Rotations and mixes with AVX-512 VNNI: a band of 16 rows in a register, and VPDPWSSD, which multiplies pairs and adds. */
#include "qornn_host.h"

#if QORNN_X86
#include <immintrin.h>

#include "qornn_pairs.h"

#define QORNN_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

QORNN_TARGET QORNN_INLINE __m512i plus(__m512i sum, const int16_t *pairs, const int16_t *x) {
    int32_t two;
    __builtin_memcpy(&two, x, sizeof two);
    return _mm512_dpwssd_epi32(sum, _mm512_loadu_si512(pairs), _mm512_set1_epi32(two));
}

/* The sums of 16 rows with x, in `blocks` pairs. */
QORNN_TARGET QORNN_INLINE __m512i band(const int16_t *pairs, const int16_t *x, size_t blocks) {
    __m512i s[8]; /* one would wait for itself */
    size_t c = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        s[i] = _mm512_setzero_si512();
    }
    for (; c + 8 <= blocks; c += 8) {
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++) {
            s[i] = plus(s[i], pairs + 2 * QORNN_BAND * (c + i), x + 2 * (c + i));
        }
    }
    for (; c + 2 <= blocks; c += 2) {
        s[0] = plus(s[0], pairs + 2 * QORNN_BAND * c, x + 2 * c);
        s[1] = plus(s[1], pairs + 2 * QORNN_BAND * (c + 1), x + 2 * (c + 1));
    }
    if (c < blocks) {
        s[2] = plus(s[2], pairs + 2 * QORNN_BAND * c, x + 2 * c);
    }
    const __m512i a = _mm512_add_epi32(_mm512_add_epi32(s[0], s[1]), _mm512_add_epi32(s[2], s[3]));
    const __m512i b = _mm512_add_epi32(_mm512_add_epi32(s[4], s[5]), _mm512_add_epi32(s[6], s[7]));
    return _mm512_add_epi32(a, b);
}

/* The same of band i of a matrix; or of the column that a code selects, at most 16 rows from `first` on. */
QORNN_TARGET QORNN_INLINE __m512i sums_of(const int16_t *pairs, size_t i, const int8_t *bytes, size_t stride, size_t first,
                                          size_t rows, const int16_t *x, size_t n, size_t code) {
    if (x) {
        const size_t blocks = (n + 1) / 2;
        return band(pairs + 2 * QORNN_BAND * blocks * i, x, blocks);
    }
    const __mmask16 live = (__mmask16)((1u << rows) - 1u);
    return _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(live, bytes + code * stride + first));
}

QORNN_TARGET QORNN_INLINE __m512i shifts_of(const int8_t *shift, __mmask16 live) {
    return _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(live, shift));
}

QORNN_TARGET QORNN_INLINE __m512i numbers(const int16_t *at) {
    return _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

/* All 16: buffers have room. What is stored under a mask, or by VPMOVDW itself, is slow to load again at once. */
QORNN_TARGET QORNN_INLINE void store(int16_t *at, __m512i v) {
    __m256i narrow = _mm512_cvtepi32_epi16(v);
    __asm__("" : "+v"(narrow));
    _mm256_storeu_si256((__m256i *)(void *)at, narrow);
}

/* qornn_turned of 16 rows. */
QORNN_TARGET QORNN_INLINE __m512i turned(const qornn_rotations *p, __m512i z, __m512i drive, __m512i e) {
    const __m512i up = _mm512_max_epi32(e, _mm512_setzero_si512()), down = _mm512_sub_epi32(up, e);
    const __m512i by = _mm512_add_epi32(down, _mm512_set1_epi32(p->bits_lambda - 1));
    const __m512i half = _mm512_srli_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), by), 1);
    const __m512i turn = _mm512_sllv_epi32(z, down), driven = _mm512_sllv_epi32(drive, up);
    const __m512i negative = _mm512_srai_epi32(_mm512_add_epi32(turn, driven), 31);
    const __m512i raised = _mm512_add_epi32(_mm512_add_epi32(turn, half), driven);
    const __m512i v = _mm512_srav_epi32(_mm512_add_epi32(raised, negative), by);
    const int32_t top = (1 << (p->bits_z - 1)) - 1;
    return _mm512_max_epi32(_mm512_min_epi32(v, _mm512_set1_epi32(top)), _mm512_set1_epi32(-top));
}

/* The real parts, or the imaginary ones. A band that is not full writes zeros past its end: over imaginary parts that are
   still to come, or over padding. */
QORNN_TARGET QORNN_INLINE void half_turn(const qornn_host_rotations *m, const qornn_work *w, const int16_t *x, size_t code,
                                         size_t imaginary) {
    const qornn_rotations *p = &m->layer;
    const size_t pairs = p->pairs, bands = (pairs + 15) / 16, from = imaginary * pairs;
    for (size_t i = 0; i < bands; i++) {
        const size_t j = 16 * i, rows = pairs - j < 16 ? pairs - j : 16;
        const __mmask16 live = (__mmask16)((1u << rows) - 1u);
        const size_t at = imaginary * bands + i;
        const __m512i drive = sums_of(m->U_pairs, at, m->U_bytes, 2 * pairs, from + j, rows, x, p->n_i, code);
        /* re in the low half of a lane, im in its high half: VPMADDWD is a part of their complex product. */
        const __m512i re = numbers(w->h + j), im = numbers(w->h + pairs + j);
        const __m512i z = _mm512_mask_blend_epi16(0xaaaaaaaau, re, _mm512_slli_epi32(im, 16));
        const __m512i product = _mm512_madd_epi16(z, _mm512_loadu_si512(m->turn_pairs + 32 * at));
        store(w->next + from + j, turned(p, product, drive, shifts_of(p->shift + from + j, live)));
    }
}

QORNN_TARGET static void rotations(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    const qornn_host_rotations *m = (const qornn_host_rotations *)layer;
    half_turn(m, w, x, code, 0);
    half_turn(m, w, x, code, 1);
}

QORNN_TARGET static void mix(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    const qornn_host_mix_layer *m = (const qornn_host_mix_layer *)layer;
    const qornn_mix_layer *p = &m->layer;
    const size_t width = p->width;
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi32(1);
    for (size_t j = 0; j < width; j += 16) {
        const size_t rows = width - j < 16 ? width - j : 16;
        const __mmask16 live = (__mmask16)((1u << rows) - 1u);
        __m512i acc = sums_of(m->C_pairs, j / 16, m->C_bytes, width, j, rows, x, p->n_i, code);
        if (p->n_skip) {
            const __m512i apart = shifts_of(p->apart + j, live), up = _mm512_max_epi32(apart, zero);
            const __m512i beside = sums_of(m->S_pairs, j / 16, m->S_bytes, width, j, rows, w->x_before, p->n_skip,
                                           w->code_before);
            acc = _mm512_add_epi32(_mm512_sllv_epi32(acc, up),
                                   _mm512_sllv_epi32(beside, _mm512_sub_epi32(up, apart)));
        }
        acc = _mm512_add_epi32(acc, _mm512_maskz_loadu_epi32(live, p->bias_wide + j));
        const __m512i t = shifts_of(p->shift + j, live), down = _mm512_max_epi32(t, zero);
        const __m512i half = _mm512_srli_epi32(_mm512_sllv_epi32(one, down), 1);
        acc = _mm512_sllv_epi32(_mm512_max_epi32(acc, zero), _mm512_sub_epi32(down, t));
        const __m512i v = _mm512_srlv_epi32(_mm512_add_epi32(acc, half), down);
        store(w->next + j, _mm512_min_epi32(v, _mm512_set1_epi32(127)));
    }
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
