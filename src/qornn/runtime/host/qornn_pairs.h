/* Matrices of stacks on the host: products of numbers or of a code, and what follows them, in loops without a branch inside,
   which compilers turn into wide instructions in whatever function they are inlined.

   As pairs, a matrix lies in bands of 16 rows, and each band in blocks of 16 rows x 2 columns of 16 bits: VPMADDWD then
   multiplies a block by two numbers that are broadcast, and no sum has to be added up across a register. */
#ifndef QORNN_PAIRS_H
#define QORNN_PAIRS_H

#include "qornn_host.h"

#define QORNN_BAND 16u

/* A product of `rows` rows with x (n): the wide part of a kernel. */
typedef void (*qornn_pairs_product)(const int16_t *pairs, size_t rows, const int16_t *x, size_t n, int32_t *sums);

/* The sums of the rows from `first` on of a matrix in columns of bytes. */
QORNN_INLINE void qornn_columns(const int8_t *bytes, size_t stride, size_t first, size_t rows, const int16_t *x,
                                size_t n, size_t code, int32_t *sums) {
    const int8_t *column = bytes + first + (x ? 0 : code * stride);
    const int32_t one = x ? x[0] : 1;
    for (size_t j = 0; j < rows; j++) {
        sums[j] = column[j] * one;
    }
    for (size_t c = 1; x && c < n; c++) {
        const int32_t number = x[c];
        column += stride;
        for (size_t j = 0; j < rows; j++) {
            sums[j] += column[j] * number;
        }
    }
}

/* From the sums of U to the next states: the sums of the imaginary rows begin at a multiple of 16. */
QORNN_INLINE void qornn_pairs_turn(const qornn_rotations *layer, const qornn_work *w) {
    const qornn_rotations form = *layer;
    const size_t pairs = form.pairs, apart = QORNN_UNITS(pairs, QORNN_BAND);
    const int32_t *sums = w->sums;
    const int16_t *h = w->h;
    int16_t *next = w->next;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (size_t j = 0; j < pairs; j++) {
        const int32_t minus_a = form.turns_wide[j], b = form.turns_wide[pairs + j], re = h[j], im = h[pairs + j];
        next[j] = qornn_turned(&form, -(minus_a * re + b * im), (uint32_t)sums[j], form.shift[j]);
        next[pairs + j] = qornn_turned(&form, b * re - minus_a * im, (uint32_t)sums[apart + j], form.shift[pairs + j]);
    }
}

QORNN_INLINE void qornn_pairs_rotations(const qornn_host_rotations *m, const qornn_work *w, const int16_t *x,
                                        size_t code, qornn_pairs_product product) {
    const size_t pairs = m->layer.pairs, apart = QORNN_UNITS(pairs, QORNN_BAND);
    if (product && x) {
        product(m->U_pairs, 2 * apart, x, m->layer.n_i, w->sums);
    } else {
        qornn_columns(m->U_bytes, 2 * pairs, 0, pairs, x, m->layer.n_i, code, w->sums);
        qornn_columns(m->U_bytes, 2 * pairs, pairs, pairs, x, m->layer.n_i, code, w->sums + apart);
    }
    qornn_pairs_turn(&m->layer, w);
}

QORNN_INLINE void qornn_pairs_mix(const qornn_host_mix_layer *m, const qornn_work *w, const int16_t *x, size_t code,
                                  qornn_pairs_product product) {
    const qornn_mix_layer form = m->layer;
    const size_t width = form.width;
    int32_t *sums = w->sums, *beside = w->drive;
    int16_t *next = w->next;
    if (product && x) {
        product(m->C_pairs, width, x, form.n_i, sums);
    } else {
        qornn_columns(m->C_bytes, width, 0, width, x, form.n_i, code, sums);
    }
    if (form.n_skip) {
        if (product && w->x_before) {
            product(m->S_pairs, width, w->x_before, form.n_skip, beside);
        } else {
            qornn_columns(m->S_bytes, width, 0, width, w->x_before, form.n_skip, w->code_before, beside);
        }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
        for (size_t j = 0; j < width; j++) {
            const int32_t apart = form.apart[j];
            sums[j] = (int32_t)(((uint32_t)sums[j] << qornn_up(apart)) + ((uint32_t)beside[j] << qornn_down(apart)));
        }
    }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (size_t j = 0; j < width; j++) {
        const int32_t acc = sums[j] + form.bias_wide[j], t = form.shift[j];
        const uint32_t a = (uint32_t)(acc < 0 ? 0 : acc) << qornn_down(t), down = qornn_up(t);
        const uint32_t v = (a + ((1u << down) >> 1)) >> down;
        next[j] = (int16_t)(v > 127u ? 127u : v);
    }
}

#endif
