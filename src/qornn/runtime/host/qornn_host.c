/* Whole sequences: every step through all layers, then the readout where one is due. */
#include "qornn_host_readout.h"

/* The digest of the headers, from CMakeLists.txt; a library without it is refused by whoever mirrors them. */
#ifndef QORNN_DIGEST
#define QORNN_DIGEST ""
#endif

/* A layer at work. */
typedef struct {
    const void *layer;
    qornn_host_step step;
    size_t n_h, units;
    int16_t *h, *next;
} lane;

/* The work area. */
typedef struct {
    lane *lanes;
    qornn_work shared; /* but for h and next */
    int16_t *x;
    qornn_last last;
} area;

const char *qornn_digest(void) { return QORNN_DIGEST; }

static const qornn_host_recurrent *recurrent(const qornn_host_layer *layer) {
    return (const qornn_host_recurrent *)layer->layer; /* the one kind there is */
}

int qornn_kernel(const qornn_host_model *m, int kernel) {
    int chosen;
    qornn_host_recurrent_step(recurrent(m->layers), kernel, &chosen);
    return chosen;
}

/* Lay the parts of the work area out from `start`; returns where they end. */
static uintptr_t lay_out(const qornn_host_model *m, uintptr_t start, area *a) {
    const uintptr_t at = (start + 63u) & ~(uintptr_t)63u;
    const size_t lanes = (m->count * sizeof(lane) + 63u) / 64u * 64u;
    size_t widest = 0, all = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const size_t units = QORNN_UNITS(recurrent(m->layers + i)->layer.n_h, QORNN_HOST_UNITS);
        widest = units > widest ? units : widest;
        all += 2 * units;
    }
    a->lanes = (lane *)at;
    int16_t *const states = (int16_t *)(at + lanes);
    a->shared.spread = states + all;
    a->shared.sums = (int32_t *)(void *)(a->shared.spread + widest);
    a->shared.drive = a->shared.sums + widest;
    a->last.sums = a->shared.sums; /* the step is over: its sums are free */
    a->last.totals = (float *)(void *)(a->shared.drive + widest);
    a->x = (int16_t *)(void *)(a->last.totals + m->readout.n_o);
    return (uintptr_t)(a->x + m->input.room);
}

size_t qornn_work_bytes(const qornn_host_model *m) {
    area a;
    return (size_t)lay_out(m, 64u, &a); /* as much as 64 bytes go to alignment */
}

static void prepare(const qornn_host_model *m, area *a, int kernel) {
    int16_t *states = (int16_t *)((uintptr_t)a->lanes + (m->count * sizeof(lane) + 63u) / 64u * 64u);
    for (uint32_t i = 0; i < m->count; i++) {
        const qornn_host_recurrent *layer = recurrent(m->layers + i);
        lane *const l = a->lanes + i;
        int chosen;
        l->layer = layer;
        l->step = qornn_host_recurrent_step(layer, kernel, &chosen);
        l->n_h = layer->layer.n_h;
        l->units = QORNN_UNITS(l->n_h, QORNN_HOST_UNITS);
        l->h = states;
        l->next = states + l->units;
        states += 2 * l->units;
    }
}

static void fill(int16_t *to, const int16_t *from, size_t n, size_t units) {
    for (size_t j = 0; j < units; j++) {
        to[j] = from && j < n ? from[j] : (int16_t)0;
    }
}

/* The states of all layers, from `from` or zero. */
static void begin(const qornn_host_model *m, area *a, const int16_t *from) {
    for (uint32_t i = 0; i < m->count; i++) {
        lane *const l = a->lanes + i;
        fill(l->h, from, l->n_h, l->units);
        fill(l->next, NULL, 0, l->units);
        from = from ? from + l->n_h : NULL;
    }
}

static void keep(const qornn_host_model *m, const area *a, int16_t *to) {
    for (uint32_t i = 0; i < m->count; i++) {
        fill(to, a->lanes[i].h, a->lanes[i].n_h, a->lanes[i].n_h);
        to += a->lanes[i].n_h;
    }
}

/* One step through all layers; each reads what the one before it gives. */
static void advance(const qornn_host_model *m, area *a, const int16_t *x, size_t code) {
    for (uint32_t i = 0; i < m->count; i++) {
        lane *const l = a->lanes + i;
        a->shared.h = l->h;
        a->shared.next = l->next;
        l->step(l->layer, &a->shared, x, code);
        l->h = a->shared.next;
        l->next = a->shared.h;
        x = l->h;
        code = 0;
    }
}

/* Sequence b. */
static int run_one(const qornn_host_model *m, const qornn_batch *batch, size_t b, area *a) {
    const size_t T = (size_t)batch->T, length = (size_t)batch->lengths[b];
    const int codes = m->input.kind == QORNN_CODES, every = m->readout.steps == QORNN_ALL;
    const size_t width = codes ? 1 : m->input.n_i;
    const int16_t *raw = batch->x + b * T * width;
    lane *const end = a->lanes + m->count - 1;
    size_t kept = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        kept += a->lanes[i].n_h;
    }
    begin(m, a, batch->h ? batch->h + b * kept : NULL);
    for (size_t t = 0; t < T; t++, raw += width) {
        if (t < length) {
            if (codes) {
                if (!qornn_is_code(&m->input, *raw)) {
                    return QORNN_BAD_CODE;
                }
                advance(m, a, NULL, (size_t)*raw);
            } else {
                qornn_quantize(&m->input, raw, a->x);
                advance(m, a, a->x, 0);
            }
            a->last.h = end->h;
            if (t + 1 == length && batch->h) {
                keep(m, a, batch->h + b * kept);
            }
            if (t + 1 == length && batch->y && !every) {
                qornn_host_read(m, &a->last, batch->y, b);
            }
        } else {
            if (!every && !batch->states) {
                break;
            }
            fill(end->h, NULL, 0, end->n_h); /* past the end: the zero state */
        }
        if (batch->states) {
            fill(batch->states + (b * T + t) * end->n_h, end->h, end->n_h, end->n_h);
        }
        if (batch->y && every) {
            qornn_host_read(m, &a->last, batch->y, b * T + t);
        }
    }
    return QORNN_OK;
}

int qornn_run(const qornn_host_model *m, const qornn_batch *batch, int kernel) {
    area a;
    lay_out(m, (uintptr_t)batch->work, &a);
    prepare(m, &a, kernel);
    for (size_t b = 0; b < (size_t)batch->B; b++) {
        const int bad = run_one(m, batch, b, &a);
        if (bad) {
            return bad;
        }
    }
    return QORNN_OK;
}
