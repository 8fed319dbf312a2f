/* The readouts of the host: V column by column, so that wide registers run along the outputs. */
#include "../qornn_nofuse.h"

#include "qornn_host_readout.h"

/* What the readout sees of unit j, mixed before where it is mixed. */
static int32_t seen(const qornn_readout *p, const qornn_last *last, size_t j) {
    const int32_t unit = p->mix ? last->sums[j] : last->h[j];
    return p->relu && unit < 0 ? 0 : unit;
}

/* The float readout side by side over outputs: each sum in the order j = 0..n_h-1, as qornn_readout_float. */
static void read_columns(const qornn_host_model *m, const qornn_last *last, float *y) {
    const qornn_readout *p = &m->readout;
    const size_t n_o = p->n_o;
    float *totals = last->totals;
    for (size_t o = 0; o < n_o; o++) {
        totals[o] = 0.0f;
    }
    for (size_t j = 0; j < p->n_h; j++) {
        const float *V = m->V_columns + j * n_o;
        const float unit = (float)seen(p, last, j);
        for (size_t o = 0; o < n_o; o++) {
            const float product = unit * V[o];
            totals[o] = totals[o] + product;
        }
    }
    for (size_t o = 0; o < n_o; o++) {
        const float scaled = totals[o] * p->scale;
        y[o] = scaled + p->b_o[o];
    }
}

/* The integer readout of S h, column by column. */
static void read_mixed(const qornn_readout *p, const qornn_last *last, int32_t *y) {
    const size_t n_o = p->n_o;
    const int8_t *V = p->V_int;
    for (size_t o = 0; o < n_o; o++) {
        y[o] = p->b_o_int[o];
    }
    for (size_t j = 0; j < p->n_h; j++, V += n_o) {
        const int32_t unit = seen(p, last, j);
        for (size_t o = 0; o < n_o; o++) {
            y[o] += V[o] * unit;
        }
    }
}

/* The integer readout of a mean. */
static void read_mean(const qornn_readout *p, const qornn_last *last, int32_t *y) {
    const int8_t *V = p->V_int;
    for (size_t o = 0; o < p->n_o; o++, V += p->n_h) {
        int32_t sum = p->b_o_int[o] * (int32_t)last->count;
        for (size_t j = 0; j < p->n_h; j++) {
            sum += V[j] * last->held[j];
        }
        y[o] = sum;
    }
}

void qornn_host_read(const qornn_host_model *m, const qornn_last *last, void *y, size_t row) {
    const qornn_readout *p = &m->readout;
    if (p->mix) {
        qornn_host_mix(last->h, last->sums, p->n_h);
    }
    if (p->steps == QORNN_MEAN) {
        read_mean(p, last, (int32_t *)y + row * p->n_o);
    } else if (p->kind == QORNN_INT && p->mix) {
        read_mixed(p, last, (int32_t *)y + row * p->n_o);
    } else if (p->kind == QORNN_INT) { /* one byte a weight, however few bits it has */
        qornn_read_int(p, last->h, (int32_t *)y + row * p->n_o);
    } else {
        read_columns(m, last, (float *)y + row * p->n_o);
    }
}
