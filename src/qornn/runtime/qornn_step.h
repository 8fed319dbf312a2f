/* One time step. Called with the address of a `static const` program, every switch is decided by the compiler and
   only the kernels in use are linked. The caller owns the state: two buffers of QORNN_UNITS(n_h, group) int16, zero
   at the start of a sequence; a step reads h, writes next, and the caller swaps them. */
#ifndef QORNN_STEP_H
#define QORNN_STEP_H

#include "qornn.h"
#include "qornn_input.h"
#include "qornn_planes.h"
#include "qornn_requant.h"
#include "qornn_structured.h"

/* sum W_i h_i of the rows j, j + apart, j + 2 apart, j + 3 apart. */
QORNN_INLINE void qornn_rows(const qornn_program *p, size_t j, size_t apart, const int16_t *h, uint32_t sum_h,
                             uint32_t sums[4]) {
    const size_t words = qornn_row_words(p->n_h, p->bits_W);
    qornn_packed(p->W_planes + j * words, apart * words, p->n_h, p->bits_W, h, sum_h, sums);
}

/* next from h and either x_i or a code. */
QORNN_INLINE void qornn_advance(const qornn_program *p, const int16_t *x, size_t code, const int16_t *h, int16_t *next) {
    const size_t n_h = p->n_h;
    uint32_t sum_h = 0;
    for (size_t j = 0; j < n_h; j++) {
        const int32_t unit = h[j];
        sum_h += (uint32_t)unit;
    }
    const uint32_t sum_x = qornn_sum_x(p, x);
    /* Fewer than four rows: one at a time, four times over. Otherwise the last four may overlap those before them. */
    const size_t block = n_h < 4 ? 1 : 4;
    for (size_t done = 0; done < n_h; done += block) {
        const size_t j = done + block > n_h ? n_h - block : done;
        uint32_t sums[4], drives[4];
        qornn_rows(p, j, block == 4 ? 1 : 0, h, sum_h, sums);
        qornn_drives(p, j, block, x, sum_x, code, drives);
        for (size_t r = 0; r < block; r++) {
            next[j + r] = qornn_next(p, j + r, (int32_t)sums[r], (int32_t)drives[r], h[j + r]);
        }
    }
}

/* One step of a program that reads samples: n_i raw ones; x is room for qornn_inputs, at a multiple of 4 bytes. */
QORNN_INLINE int qornn_step(const qornn_program *p, const int16_t *raw, int16_t *x, const int16_t *h, int16_t *next) {
    qornn_quantize(p, raw, x);
    qornn_advance(p, x, 0, h, next);
    return QORNN_OK;
}

/* Whether U has a column for it. */
QORNN_INLINE int qornn_is_code(const qornn_program *p, int32_t code) { return code >= 0 && (uint32_t)code < p->n_i; }

/* One step of a program that reads codes; one that is not in the table changes nothing. */
QORNN_INLINE int qornn_step_code(const qornn_program *p, int32_t code, const int16_t *h, int16_t *next) {
    if (!qornn_is_code(p, code)) {
        return QORNN_BAD_CODE;
    }
    qornn_advance(p, NULL, (size_t)code, h, next);
    return QORNN_OK;
}

/* y (n_o) of a state, for programs with a float readout. */
QORNN_INLINE void qornn_read_float(const qornn_program *p, const int16_t *h, float *y) {
    if (p->mix) {
        qornn_readout_mix_float(p->V, p->b_o, p->scale, p->n_o, p->n_h, p->readout_relu, h, NULL, y);
        return;
    }
    qornn_readout_float(p->V, p->b_o, p->scale, p->n_o, p->n_h, p->readout_relu, h, y);
}

/* y (n_o) of a state, for programs with an integer readout. */
QORNN_INLINE void qornn_read_int(const qornn_program *p, const int16_t *h, int32_t *y) {
    if (p->mix) {
        qornn_readout_mix_packed(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, p->readout_relu, h, NULL, y);
    } else if (p->V_packed) {
        qornn_readout_packed(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, p->readout_relu, h, y);
    } else {
        qornn_readout_int(p->V_int, p->b_o_int, p->n_o, p->n_h, p->readout_relu, h, y);
    }
}

/* The same of states kept in 32 bits. */
QORNN_INLINE void qornn_read_float_wide(const qornn_program *p, const int32_t *h, float *y) {
    if (p->mix) {
        qornn_readout_mix_float(p->V, p->b_o, p->scale, p->n_o, p->n_h, p->readout_relu, NULL, h, y);
        return;
    }
    qornn_readout_float_wide(p->V, p->b_o, p->scale, p->n_o, p->n_h, p->readout_relu, h, y);
}

QORNN_INLINE void qornn_read_int_wide(const qornn_program *p, const int32_t *h, int32_t *y) {
    if (p->mix) {
        qornn_readout_mix_packed(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, p->readout_relu, NULL, h, y);
        return;
    }
    qornn_readout_packed_wide(p->V_packed, p->bits_V, p->b_o_int, p->n_o, p->n_h, p->readout_relu, h, y);
}

#endif
