/* Whole sequences: every step through all layers, then the readout where one is due. */
#include "qornn_host_readout.h"

/* The digest of the headers, from CMakeLists.txt; a library without it is refused by whoever mirrors them. */
#ifndef QORNN_DIGEST
#define QORNN_DIGEST ""
#endif

/* Steps whose inputs are made together: a step would wait for what was stored a moment before in smaller parts. */
enum { AHEAD = 16 };

/* A layer at work. */
typedef struct {
    const void *layer;
    qornn_host_step step;
    size_t n_state, n_out, units;
    int16_t *h, *next; /* its outputs, which are its state where it has one */
} lane;

/* The work area. */
typedef struct {
    lane *lanes;
    lane *shown; /* the last that has a state */
    qornn_work shared; /* but for what belongs to one layer */
    int16_t *x; /* AHEAD steps */
    qornn_last last;
} area;

static const qornn_host_kind *const kinds[] = {&qornn_host_recurrent_kind, &qornn_host_rotations_kind,
                                               &qornn_host_mix_kind};

const char *qornn_digest(void) { return QORNN_DIGEST; }

static size_t units_of(const qornn_host_layer *layer) {
    return QORNN_UNITS(kinds[layer->kind]->outputs(layer->layer), QORNN_HOST_UNITS);
}

int qornn_kernel(const qornn_host_model *m, int kernel) {
    int best = QORNN_PORTABLE;
    for (uint32_t i = 0; i < m->count; i++) {
        int chosen;
        kinds[m->layers[i].kind]->step(m->layers[i].layer, kernel, &chosen);
        best = chosen > best ? chosen : best;
    }
    return best;
}

/* Lay the parts of the work area out from `start`; returns where they end. */
static uintptr_t lay_out(const qornn_host_model *m, uintptr_t start, area *a) {
    const uintptr_t at = (start + 63u) & ~(uintptr_t)63u;
    const size_t lanes = (m->count * sizeof(lane) + 63u) / 64u * 64u;
    size_t widest = 0, all = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const size_t units = units_of(m->layers + i);
        widest = units > widest ? units : widest;
        all += 2 * units;
    }
    a->lanes = (lane *)at;
    int16_t *const states = (int16_t *)(at + lanes);
    a->shared.spread = states + all;
    a->shared.sums = (int32_t *)(void *)(a->shared.spread + widest);
    a->shared.drive = a->shared.sums + widest;
    a->last.sums = a->shared.sums; /* the step is over: its sums are free */
    a->last.held = a->shared.drive + widest;
    a->last.totals = (float *)(void *)(a->last.held + m->readout.n_h);
    a->x = (int16_t *)(void *)(a->last.totals + m->readout.n_o);
    return (uintptr_t)(a->x + AHEAD * m->input.room);
}

size_t qornn_work_bytes(const qornn_host_model *m) {
    area a;
    return (size_t)lay_out(m, 64u, &a); /* as much as 64 bytes go to alignment */
}

static void prepare(const qornn_host_model *m, area *a, int kernel) {
    int16_t *states = (int16_t *)((uintptr_t)a->lanes + (m->count * sizeof(lane) + 63u) / 64u * 64u);
    a->shown = a->lanes + m->count - 1;
    for (uint32_t i = 0; i < m->count; i++) {
        const void *layer = m->layers[i].layer;
        const qornn_host_kind *kind = kinds[m->layers[i].kind];
        lane *const l = a->lanes + i;
        int chosen;
        l->layer = layer;
        l->step = kind->step(layer, kernel, &chosen);
        l->n_state = kind->states(layer);
        l->n_out = kind->outputs(layer);
        l->units = units_of(m->layers + i);
        l->h = states;
        l->next = states + l->units;
        states += 2 * l->units;
        a->shown = l->n_state ? l : a->shown;
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
        fill(l->h, from, l->n_state, l->units);
        fill(l->next, NULL, 0, l->units);
        from = from ? from + l->n_state : NULL;
    }
}

static void keep(const qornn_host_model *m, const area *a, int16_t *to) {
    for (uint32_t i = 0; i < m->count; i++) {
        fill(to, a->lanes[i].h, a->lanes[i].n_state, a->lanes[i].n_state);
        to += a->lanes[i].n_state;
    }
}

/* What a mean holds of sequence b, from the batch or zero, and back. */
static void begin_mean(const qornn_host_model *m, const qornn_batch *batch, size_t b, area *a) {
    const size_t n = m->readout.n_h;
    a->last.count = batch->sums ? batch->counts[b] : 0u;
    for (size_t j = 0; j < n; j++) {
        a->last.held[j] = batch->sums ? batch->sums[b * n + j] : 0;
    }
}

static void keep_mean(const qornn_host_model *m, const qornn_batch *batch, size_t b, const area *a) {
    const size_t n = m->readout.n_h;
    batch->counts[b] = a->last.count;
    for (size_t j = 0; j < n; j++) {
        batch->sums[b * n + j] = a->last.held[j];
    }
}

/* One step through all layers; each reads what the one before it gives. */
static void advance(const qornn_host_model *m, area *a, const int16_t *x, size_t code) {
    const int16_t *x_before = NULL;
    size_t code_before = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        lane *const l = a->lanes + i;
        a->shared.h = l->h;
        a->shared.next = l->next;
        a->shared.x_before = x_before;
        a->shared.code_before = code_before;
        l->step(l->layer, &a->shared, x, code);
        l->h = a->shared.next;
        l->next = a->shared.h;
        x_before = x;
        code_before = code;
        x = l->h;
        code = 0;
    }
}

/* Step t of a sequence: a code, or n_i samples. The inputs of those that follow are made with the first of them. */
static int take(const qornn_host_model *m, area *a, const int16_t *raw, size_t t, size_t length) {
    if (m->input.kind == QORNN_CODES) {
        if (!qornn_is_code(&m->input, *raw)) {
            return QORNN_BAD_CODE;
        }
        advance(m, a, NULL, (size_t)*raw);
    } else {
        for (size_t i = 0; t % AHEAD == 0 && i < AHEAD && t + i < length; i++) {
            qornn_quantize(&m->input, raw + i * m->input.n_i, a->x + i * m->input.room);
        }
        advance(m, a, a->x + t % AHEAD * m->input.room, 0);
    }
    a->last.h = a->lanes[m->count - 1].h;
    if (m->readout.steps == QORNN_MEAN) {
        qornn_mean_add(&m->readout, a->last.h, a->last.held, &a->last.count);
    }
    return QORNN_OK;
}

/* Sequence b. */
static int run_one(const qornn_host_model *m, const qornn_batch *batch, size_t b, area *a) {
    const size_t T = (size_t)batch->T, length = (size_t)batch->lengths[b];
    const int every = m->readout.steps == QORNN_ALL;
    const size_t width = m->input.kind == QORNN_CODES ? 1 : m->input.n_i;
    const int16_t *raw = batch->x + b * T * width;
    lane *const end = a->lanes + m->count - 1;
    size_t kept = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        kept += a->lanes[i].n_state;
    }
    begin(m, a, batch->h ? batch->h + b * kept : NULL);
    begin_mean(m, batch, b, a);
    for (size_t t = 0; t < T; t++, raw += width) {
        if (t < length) {
            const int bad = take(m, a, raw, t, length);
            if (bad) {
                return bad;
            }
            if (t + 1 == length && batch->h) {
                keep(m, a, batch->h + b * kept);
            }
            if (t + 1 == length && batch->sums) {
                keep_mean(m, batch, b, a);
            }
            if (t + 1 == length && batch->y && !every) {
                qornn_host_read(m, &a->last, batch->y, b);
            }
        } else {
            if (!every && !batch->states) {
                break;
            }
            fill(a->shown->h, NULL, 0, a->shown->n_state); /* past the end: zeros */
            fill(end->h, NULL, 0, end->n_out);
        }
        if (batch->states) {
            fill(batch->states + (b * T + t) * a->shown->n_state, a->shown->h, a->shown->n_state, a->shown->n_state);
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
