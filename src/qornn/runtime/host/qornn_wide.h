/* What follows the recurrent sums when all rows are at hand: loops without a branch inside, which compilers turn into
   wide instructions in whatever function they are inlined. */
#ifndef QORNN_WIDE_H
#define QORNN_WIDE_H

#include "../qornn_drive.h"
#include "../qornn_requant.h"
#include "qornn_host.h"

/* sum U_i x_i of every row. */
QORNN_INLINE void qornn_wide_drive(const qornn_host_recurrent *m, const int16_t *x, size_t code, int32_t *drive) {
    const qornn_recurrent *p = &m->layer;
    const size_t n_h = p->n_h;
    if (!m->U_bytes) {
        const size_t block = n_h < 4 ? 1 : 4; /* as in qornn_dense.h */
        const uint32_t sum_x = qornn_sum_x(p, x);
        for (size_t done = 0; done < n_h; done += block) {
            const size_t j = done + block > n_h ? n_h - block : done;
            uint32_t drives[4];
            qornn_drives(p, j, block, x, sum_x, code, drives);
            for (size_t r = 0; r < block; r++) {
                drive[j + r] = (int32_t)drives[r];
            }
        }
    } else if (p->input == QORNN_CODES) {
        const int8_t *U = m->U_bytes + code * n_h;
        for (size_t j = 0; j < n_h; j++) {
            drive[j] = U[j];
        }
    } else {
        for (size_t c = 0; c < p->n_i; c++) {
            const int8_t *U = m->U_bytes + c * n_h;
            const int32_t x_c = x[c];
            for (size_t j = 0; j < n_h; j++) {
                drive[j] = (c ? drive[j] : 0) + U[j] * x_c;
            }
        }
    }
}

/* The next states from row `first` on. `form` decides every branch: it is passed by value, its kinds constant. */
QORNN_INLINE void qornn_wide_rows(qornn_recurrent form, const qornn_work *w, size_t first) {
    const int32_t *sums = w->sums, *drive = w->drive;
    const int16_t *h = w->h;
    int16_t *next = w->next;
    const size_t n_h = form.n_h;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (size_t j = first; j < n_h; j++) {
        next[j] = qornn_next(&form, j, sums[j], drive[j], h[j]);
    }
}

/* Some rows of scheme per-row by wide instructions, from the first; says how many, and the rest is done one by one. */
typedef size_t (*qornn_wide_per_row)(const qornn_recurrent *p, const qornn_work *w);

/* For those who have no such instructions. */
QORNN_INLINE size_t qornn_wide_none(const qornn_recurrent *p, const qornn_work *w) {
    (void)p;
    (void)w;
    return 0;
}

/* Every next state from its two sums. 64-bit products of 32-bit numbers are what compilers miss, hence `per_row`. */
QORNN_INLINE void qornn_wide_next(const qornn_recurrent *p, const qornn_work *w, qornn_wide_per_row per_row) {
    qornn_recurrent form = *p;
    if (p->requant == QORNN_PER_ROW) {
        qornn_wide_rows(form, w, per_row(p, w));
    } else if (p->requant == QORNN_MULTIPLIER && p->activation == QORNN_RELU) {
        form.requant = QORNN_MULTIPLIER;
        form.activation = QORNN_RELU;
        qornn_wide_rows(form, w, 0);
    } else if (p->requant == QORNN_MULTIPLIER && p->activation == QORNN_MODRELU) {
        form.requant = QORNN_MULTIPLIER;
        form.activation = QORNN_MODRELU;
        qornn_wide_rows(form, w, 0);
    } else if (p->requant == QORNN_SHIFT && p->activation == QORNN_RELU) {
        form.requant = QORNN_SHIFT;
        form.activation = QORNN_RELU;
        qornn_wide_rows(form, w, 0);
    } else if (p->requant == QORNN_SHIFT && p->activation == QORNN_IDENTITY) {
        form.requant = QORNN_SHIFT;
        form.activation = QORNN_IDENTITY;
        qornn_wide_rows(form, w, 0);
    } else {
        qornn_wide_rows(form, w, 0);
    }
}

#endif
