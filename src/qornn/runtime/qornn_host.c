#include "qornn_nofuse.h"

#include "qornn_host.h"
#include "qornn_step.h"
#include "qornn_wide.h"

static void portable(const qornn_host_model *m, const qornn_work *w, const int16_t *x, size_t code) {
    const size_t n_h = m->program.n_h;
    if (!m->W_bytes) {
        qornn_advance(&m->program, x, code, w->h, w->next);
        return;
    }
    for (size_t j = 0; j < n_h; j++) {
        const int8_t *row = m->W_bytes + j * m->row_bytes;
        int32_t sum = 0; /* signed weights: every partial sum was proved to fit */
        for (size_t i = 0; i < n_h; i++) {
            sum += row[i] * w->h[i];
        }
        w->sums[j] = sum;
    }
    qornn_wide_drive(m, x, code, w->drive);
    qornn_wide_next(&m->program, w, qornn_wide_none);
}

static qornn_host_step choose(const qornn_host_model *m, int kernel, int *chosen) {
    qornn_host_step step;
    if (m->program.recurrent != QORNN_DENSE) {
        *chosen = QORNN_PORTABLE;
        return qornn_host_structured;
    }
    if ((kernel < 0 || kernel == QORNN_VNNI) && (step = qornn_host_vnni(m)) != NULL) {
        *chosen = QORNN_VNNI;
        return step;
    }
    if ((kernel < 0 || kernel == QORNN_AVX2) && (step = qornn_host_avx2(m)) != NULL) {
        *chosen = QORNN_AVX2;
        return step;
    }
    *chosen = QORNN_PORTABLE;
    return portable;
}

int qornn_kernel(const qornn_host_model *m, int kernel) {
    int chosen;
    choose(m, kernel, &chosen);
    return chosen;
}

/* Lay the parts of the work area out from `start`; returns where they end. */
static uintptr_t lay_out(const qornn_program *p, uintptr_t start, qornn_work *w) {
    const size_t units = QORNN_UNITS(p->n_h, QORNN_HOST_UNITS);
    uintptr_t at = (start + 63u) & ~(uintptr_t)63u;
    w->h = (int16_t *)at;
    w->next = w->h + units;
    w->spread = w->next + units;
    w->sums = (int32_t *)(void *)(w->spread + units);
    w->drive = w->sums + units;
    w->totals = (float *)(void *)(w->drive + units);
    w->x = (int16_t *)(void *)(w->totals + p->n_o);
    return (uintptr_t)(w->x + qornn_inputs(p));
}

size_t qornn_work_bytes(const qornn_host_model *m) {
    qornn_work w;
    return (size_t)lay_out(&m->program, 64u, &w); /* as much as 64 bytes go to alignment */
}

/* What the readout sees of unit j, mixed before where it is mixed. */
static int32_t seen(const qornn_program *p, const qornn_work *w, size_t j) {
    const int32_t unit = p->mix ? w->sums[j] : w->h[j];
    return p->readout_relu && unit < 0 ? 0 : unit;
}

/* The float readout side by side over outputs: each sum in the order j = 0..n_h-1, as qornn_readout_float. */
static void read_columns(const qornn_host_model *m, const qornn_work *w, float *y) {
    const size_t n_o = m->program.n_o;
    float *totals = w->totals;
    for (size_t o = 0; o < n_o; o++) {
        totals[o] = 0.0f;
    }
    for (size_t j = 0; j < m->program.n_h; j++) {
        const float *V = m->V_columns + j * n_o;
        const float unit = (float)seen(&m->program, w, j);
        for (size_t o = 0; o < n_o; o++) {
            const float product = unit * V[o];
            totals[o] = totals[o] + product;
        }
    }
    for (size_t o = 0; o < n_o; o++) {
        const float scaled = totals[o] * m->program.scale;
        y[o] = scaled + m->program.b_o[o];
    }
}

/* The integer readout of S h, column by column. */
static void read_mixed(const qornn_program *p, const qornn_work *w, int32_t *y) {
    const size_t n_o = p->n_o;
    const int8_t *V = p->V_int;
    for (size_t o = 0; o < n_o; o++) {
        y[o] = p->b_o_int[o];
    }
    for (size_t j = 0; j < p->n_h; j++, V += n_o) {
        const int32_t unit = seen(p, w, j);
        for (size_t o = 0; o < n_o; o++) {
            y[o] += V[o] * unit;
        }
    }
}

static void read_out(const qornn_host_model *m, const qornn_work *w, void *y, size_t row) {
    const qornn_program *p = &m->program;
    if (p->mix) {
        qornn_host_mix(p, w); /* the step is over: its sums are free */
    }
    if (p->readout == QORNN_INT && p->mix) {
        read_mixed(p, w, (int32_t *)y + row * p->n_o);
    } else if (p->readout == QORNN_INT) { /* one byte a weight, however few bits it has */
        qornn_read_int(p, w->h, (int32_t *)y + row * p->n_o);
    } else if (m->V_columns) {
        read_columns(m, w, (float *)y + row * p->n_o);
    } else {
        qornn_read_float(p, w->h, (float *)y + row * p->n_o);
    }
}

static void fill_state(int16_t *to, const int16_t *from, size_t n_h, size_t units) {
    for (size_t j = 0; j < units; j++) {
        to[j] = from && j < n_h ? from[j] : (int16_t)0;
    }
}

/* Sequence b. */
static int run_one(const qornn_host_model *m, const qornn_batch *batch, size_t b, qornn_host_step step, qornn_work *w) {
    const qornn_program *p = &m->program;
    const size_t n_h = p->n_h, units = QORNN_UNITS(n_h, QORNN_HOST_UNITS);
    const size_t T = (size_t)batch->T, length = (size_t)batch->lengths[b];
    const size_t width = p->input == QORNN_CODES ? 1 : p->n_i;
    const int16_t *x = batch->x + b * T * width;
    fill_state(w->h, batch->h ? batch->h + b * n_h : NULL, n_h, units);
    fill_state(w->next, NULL, n_h, units);
    for (size_t t = 0; t < T; t++, x += width) {
        if (t < length) {
            if (p->input == QORNN_CODES) {
                if (*x < 0 || (uint32_t)*x >= p->n_i) {
                    return QORNN_BAD_CODE;
                }
                step(m, w, NULL, (size_t)*x);
            } else {
                qornn_quantize(p, x, w->x);
                step(m, w, w->x, 0);
            }
            int16_t *const swap = w->h;
            w->h = w->next;
            w->next = swap;
            if (t + 1 == length && batch->h) {
                fill_state(batch->h + b * n_h, w->h, n_h, n_h);
            }
            if (t + 1 == length && batch->y && p->steps == QORNN_LAST) {
                read_out(m, w, batch->y, b);
            }
        } else {
            if (p->steps == QORNN_LAST && !batch->states) {
                break;
            }
            fill_state(w->h, NULL, n_h, n_h); /* past the end: the zero state */
        }
        if (batch->states) {
            fill_state(batch->states + (b * T + t) * n_h, w->h, n_h, n_h);
        }
        if (batch->y && p->steps == QORNN_ALL) {
            read_out(m, w, batch->y, b * T + t);
        }
    }
    return QORNN_OK;
}

int qornn_run(const qornn_host_model *m, const qornn_batch *batch, int kernel) {
    int chosen;
    const qornn_host_step step = choose(m, kernel, &chosen);
    qornn_work w;
    lay_out(&m->program, (uintptr_t)batch->work, &w);
    for (size_t b = 0; b < (size_t)batch->B; b++) {
        const int bad = run_one(m, batch, b, step, &w);
        if (bad) {
            return bad;
        }
    }
    return QORNN_OK;
}
