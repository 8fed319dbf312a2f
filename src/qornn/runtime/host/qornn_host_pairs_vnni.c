/* Rotations and mixes with AVX-512 VNNI: a band of 16 rows in a register, and VPDPWSSD, which multiplies pairs and adds. */
#include "qornn_host.h"

#if QORNN_X86
#include <immintrin.h>

#include "qornn_pairs.h"

enum { HELD = 16 }; /* blocks of weights that stay in registers */
#define ALL 0xffffu /* as in qornn_host_vnni.c */

#define QORNN_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

QORNN_TARGET QORNN_INLINE __m512i two(const int16_t *x) {
    int32_t pair;
    __builtin_memcpy(&pair, x, sizeof pair);
    return _mm512_set1_epi32(pair);
}

/* The weights of one band that fit the registers, or where to find them. */
typedef struct {
    __m512i held[HELD];
    const int16_t *pairs;
    const int8_t *column;
    size_t blocks, stride;
    __mmask16 live;
} band;

/* Band `at` of a matrix in pairs, whose `rows` rows from `first` on are `stride` apart in columns of bytes. */
QORNN_TARGET QORNN_INLINE band band_of(size_t held, const int16_t *pairs, size_t at, size_t n, const int8_t *bytes,
                                       size_t stride, size_t first, __mmask16 live) {
    band b;
    b.blocks = (n + 1) / 2;
    b.pairs = pairs ? pairs + 2 * QORNN_BAND * b.blocks * at : NULL;
    b.column = bytes + first;
    b.stride = stride;
    b.live = live;
#pragma GCC unroll 16
    for (size_t c = 0; c < held; c++) {
        b.held[c] = _mm512_loadu_si512(b.pairs + 2 * QORNN_BAND * c);
    }
    return b;
}

/* Its sums with what is given at step k; `held` blocks, or where it is 0 as many as there are. */
QORNN_TARGET QORNN_INLINE __m512i sums(const band *b, size_t held, const qornn_given *now, size_t k) {
    if (!now->x) {
        return _mm512_maskz_cvtepi8_epi32(ALL,
                                          _mm_maskz_loadu_epi8(b->live, b->column + (size_t)now->codes[k] * b->stride));
    }
    const int16_t *x = now->x + k * now->apart;
    __m512i s[4]; /* one would wait for itself */
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        s[i] = _mm512_setzero_si512();
    }
#pragma GCC unroll 16
    for (size_t c = 0; c < held; c++) {
        s[c % 4] = _mm512_dpwssd_epi32(s[c % 4], b->held[c], two(x + 2 * c));
    }
    for (size_t c = 0; held == 0 && c < b->blocks; c++) {
        const __m512i w = _mm512_loadu_si512(b->pairs + 2 * QORNN_BAND * c), next = s[1];
        s[1] = _mm512_dpwssd_epi32(s[0], w, two(x + 2 * c)); /* two sums in turn */
        s[0] = next;
    }
    return _mm512_add_epi32(_mm512_add_epi32(s[0], s[1]), _mm512_add_epi32(s[2], s[3]));
}

QORNN_TARGET QORNN_INLINE __m512i shifts_of(const int8_t *shift, __mmask16 live) {
    return _mm512_maskz_cvtepi8_epi32(ALL, _mm_maskz_loadu_epi8(live, shift));
}

QORNN_TARGET QORNN_INLINE void store(int16_t *at, __mmask16 live, __m512i v) {
    __m256i narrow = _mm512_maskz_cvtepi32_epi16(ALL, v);
    if (live == 0xffffu) { /* what is stored under a mask, or by VPMOVDW itself, is slow to load again at once */
        __asm__("" : "+v"(narrow));
        _mm256_storeu_si256((__m256i *)(void *)at, narrow);
    } else {
        _mm256_mask_storeu_epi16(at, live, narrow);
    }
}

/* What becomes of the sums of 16 rows of U: shifts, and what rounding adds. */
typedef struct {
    __m512i up, down, by, half, turn;
} part;

QORNN_TARGET QORNN_INLINE part part_of(const qornn_host_rotations *m, size_t at, size_t row, __mmask16 live) {
    const __m512i e = shifts_of(m->layer.shift + row, live);
    part q;
    q.up = _mm512_maskz_max_epi32(ALL, e, _mm512_setzero_si512());
    q.down = _mm512_sub_epi32(q.up, e);
    q.by = _mm512_add_epi32(q.down, _mm512_set1_epi32(m->layer.bits_lambda - 1));
    q.half = _mm512_maskz_srli_epi32(ALL, _mm512_maskz_sllv_epi32(ALL, _mm512_set1_epi32(1), q.by), 1);
    q.turn = _mm512_loadu_si512(m->turn_pairs + 32 * at);
    return q;
}

/* qornn_turned: z has re in the low half of a lane and im in its high half, so VPMADDWD is a part of the complex product. */
QORNN_TARGET QORNN_INLINE __m512i turned(const part *q, __m512i z, __m512i drive, __m512i top) {
    const __m512i turn = _mm512_maskz_sllv_epi32(ALL, _mm512_madd_epi16(z, q->turn), q->down);
    const __m512i driven = _mm512_maskz_sllv_epi32(ALL, drive, q->up);
    const __m512i negative = _mm512_maskz_srai_epi32(ALL, _mm512_add_epi32(turn, driven), 31);
    const __m512i raised = _mm512_add_epi32(turn, _mm512_add_epi32(q->half, driven));
    const __m512i v = _mm512_maskz_srav_epi32(ALL, _mm512_add_epi32(raised, negative), q->by);
    return _mm512_maskz_max_epi32(ALL, _mm512_maskz_min_epi32(ALL, v, top),
                                  _mm512_sub_epi32(_mm512_setzero_si512(), top));
}

/* Sixteen pairs from j on, through all steps: their states stay in a register. */
QORNN_TARGET QORNN_INLINE void turn_band(size_t held, const qornn_host_rotations *m, size_t j, int16_t *rows,
                                         size_t units, qornn_given now, size_t steps) {
    const qornn_rotations *p = &m->layer;
    const size_t pairs = p->pairs, bands = (pairs + 15) / 16, at = j / 16, n = pairs - j < 16 ? pairs - j : 16;
    const __mmask16 live = (__mmask16)((1u << n) - 1u);
    const band U_real = band_of(held, m->U_pairs, at, p->n_i, m->U_bytes, 2 * pairs, j, live);
    const band U_imaginary = band_of(held, m->U_pairs, bands + at, p->n_i, m->U_bytes, 2 * pairs, pairs + j, live);
    const part q_real = part_of(m, at, j, live), q_imaginary = part_of(m, bands + at, pairs + j, live);
    const __m512i top = _mm512_set1_epi32((1 << (p->bits_z - 1)) - 1);
    __m512i re = _mm512_maskz_cvtepi16_epi32(ALL, _mm256_maskz_loadu_epi16(live, rows + j));
    __m512i im = _mm512_maskz_cvtepi16_epi32(ALL, _mm256_maskz_loadu_epi16(live, rows + pairs + j));
    for (size_t k = 0; k < steps; k++) {
        const __m512i z = _mm512_mask_blend_epi16(0xaaaaaaaau, re, _mm512_maskz_slli_epi32(ALL, im, 16));
        rows += units;
        re = turned(&q_real, z, sums(&U_real, held, &now, k), top);
        im = turned(&q_imaginary, z, sums(&U_imaginary, held, &now, k), top);
        store(rows + j, live, re);
        store(rows + pairs + j, live, im);
    }
}

QORNN_TARGET static void rotations(const void *layer, int16_t *rows, size_t units, qornn_given now, qornn_given before,
                                   size_t steps) {
    const qornn_host_rotations *m = (const qornn_host_rotations *)layer;
    const size_t blocks = now.x ? (m->layer.n_i + 1u) / 2u : 0;
    (void)before;
    for (size_t j = 0; j < m->layer.pairs; j += 16) {
        if (blocks == 8) {
            turn_band(8, m, j, rows, units, now, steps);
        } else if (blocks == 4) {
            turn_band(4, m, j, rows, units, now, steps);
        } else {
            turn_band(0, m, j, rows, units, now, steps);
        }
    }
}

/* Sixteen outputs from j on, of all steps. */
QORNN_TARGET QORNN_INLINE void mix_band(size_t held, const qornn_host_mix_layer *m, size_t j, int16_t *rows,
                                        size_t units, qornn_given now, qornn_given before, size_t steps) {
    const qornn_mix_layer *p = &m->layer;
    const size_t width = p->width, n = width - j < 16 ? width - j : 16;
    const __mmask16 live = (__mmask16)((1u << n) - 1u);
    const __m512i zero = _mm512_setzero_si512(), top = _mm512_set1_epi32(127);
    const __m512i bias = _mm512_maskz_loadu_epi32(live, p->bias_wide + j);
    const __m512i t = shifts_of(p->shift + j, live), down = _mm512_maskz_max_epi32(ALL, t, zero),
                  up = _mm512_sub_epi32(down, t);
    const __m512i half = _mm512_maskz_srli_epi32(ALL, _mm512_maskz_sllv_epi32(ALL, _mm512_set1_epi32(1), down), 1);
    const __m512i apart = p->n_skip ? shifts_of(p->apart + j, live) : zero,
                  up_C = _mm512_maskz_max_epi32(ALL, apart, zero);
    const __m512i up_S = _mm512_sub_epi32(up_C, apart);
    const band C = band_of(held, m->C_pairs, j / 16, p->n_i, m->C_bytes, width, j, live);
    const band S = p->n_skip ? band_of(0, m->S_pairs, j / 16, p->n_skip, m->S_bytes, width, j, live) : C;
    for (size_t k = 0; k < steps; k++) {
        __m512i acc = sums(&C, held, &now, k);
        if (p->n_skip) {
            acc = _mm512_add_epi32(_mm512_maskz_sllv_epi32(ALL, acc, up_C),
                                   _mm512_maskz_sllv_epi32(ALL, sums(&S, 0, &before, k), up_S));
        }
        acc = _mm512_maskz_sllv_epi32(ALL, _mm512_maskz_max_epi32(ALL, _mm512_add_epi32(acc, bias), zero), up);
        const __m512i v = _mm512_maskz_srlv_epi32(ALL, _mm512_add_epi32(acc, half), down);
        rows += units;
        store(rows + j, live, _mm512_maskz_min_epi32(ALL, v, top));
    }
}

QORNN_TARGET static void mix(const void *layer, int16_t *rows, size_t units, qornn_given now, qornn_given before,
                             size_t steps) {
    const qornn_host_mix_layer *m = (const qornn_host_mix_layer *)layer;
    const size_t blocks = now.x ? (m->layer.n_i + 1u) / 2u : 0;
    for (size_t j = 0; j < m->layer.width; j += 16) {
        if (blocks == 16) {
            mix_band(16, m, j, rows, units, now, before, steps);
        } else if (blocks == 8) {
            mix_band(8, m, j, rows, units, now, before, steps);
        } else {
            mix_band(0, m, j, rows, units, now, before, steps);
        }
    }
}

qornn_host_many qornn_host_rotations_vnni(const qornn_host_rotations *m) {
    return m->U_bytes && qornn_host_has(QORNN_HAS_VNNI) ? rotations : NULL;
}

qornn_host_many qornn_host_mix_vnni(const qornn_host_mix_layer *m) {
    return m->C_bytes && qornn_host_has(QORNN_HAS_VNNI) ? mix : NULL;
}

#else

qornn_host_many qornn_host_rotations_vnni(const qornn_host_rotations *m) {
    (void)m;
    return NULL;
}

qornn_host_many qornn_host_mix_vnni(const qornn_host_mix_layer *m) {
    (void)m;
    return NULL;
}

#endif
