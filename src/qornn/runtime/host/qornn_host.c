/* Whole sequences: every step through all layers, then the readout where one is due. */
#include "qornn_host_readout.h"

/* The digest of the headers, from CMakeLists.txt; a library without it is refused by whoever mirrors them. */
#ifndef QORNN_DIGEST
#define QORNN_DIGEST ""
#endif

/* Steps that go through one layer before the next layer begins: what does not wait for the step before is done meanwhile. */
#define AHEAD ((size_t)16)

/* A layer at work. */
typedef struct {
    const void *layer;
    qornn_host_way way;
    size_t n_state, n_out, units;
    int16_t *rows; /* (AHEAD + 1, units): its state before these steps, then its outputs, which are its states */
} lane;

/* The work area. */
typedef struct {
    lane *lanes;
    lane *shown;       /* the last that has a state */
    qornn_work shared; /* but for what belongs to one layer */
    int16_t *zeros;    /* as many as the widest layer has */
    int16_t *x;        /* (AHEAD, room) */
    int16_t *kept;     /* what the input remembers */
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
        const qornn_host_way way = kinds[m->layers[i].kind]->way(m->layers[i].layer, kernel);
        best = way.kernel > best ? way.kernel : best;
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
        all += (AHEAD + 1) * units;
    }
    a->lanes = (lane *)at;
    int16_t *const states = (int16_t *)(at + lanes);
    a->zeros = states + all;
    a->shared.spread = a->zeros + widest;
    a->shared.sums = (int32_t *)(void *)(a->shared.spread + widest);
    a->shared.drive = a->shared.sums + widest;
    a->last.sums = a->shared.sums; /* the step is over: its sums are free */
    a->last.held = a->shared.drive + widest;
    a->last.totals = (float *)(void *)(a->last.held + m->readout.n_h);
    a->x = (int16_t *)(void *)(a->last.totals + m->readout.n_o);
    a->kept = a->x + AHEAD * m->input.room;
    return (uintptr_t)(a->kept + qornn_remembers(&m->input));
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
        l->layer = layer;
        l->way = kind->way(layer, kernel);
        l->n_state = kind->states(layer);
        l->n_out = kind->outputs(layer);
        l->units = units_of(m->layers + i);
        l->rows = states;
        states += (AHEAD + 1) * l->units;
        a->shown = l->n_state ? l : a->shown;
    }
}

static void fill(int16_t *to, const int16_t *from, size_t n, size_t all) {
    for (size_t j = 0; j < n; j++) {
        to[j] = from[j];
    }
    for (size_t j = n; j < all; j++) {
        to[j] = 0;
    }
}

/* The states of the input and all layers, from `from` or zero; past a layer's own units its rows stay zero. */
static void begin(const qornn_host_model *m, area *a, const int16_t *from, size_t steps) {
    const size_t rows = steps < AHEAD ? steps + 1 : AHEAD + 1, remembered = qornn_remembers(&m->input);
    size_t widest = 0;
    fill(a->kept, from, from ? remembered : 0, remembered);
    from = from ? from + remembered : NULL;
    for (uint32_t i = 0; i < m->count; i++) {
        lane *const l = a->lanes + i;
        fill(l->rows, from, from ? l->n_state : 0, rows * l->units);
        from = from ? from + l->n_state : NULL;
        widest = l->units > widest ? l->units : widest;
    }
    fill(a->zeros, NULL, 0, widest);
}

/* The states after `steps` of them. */
static void keep(const qornn_host_model *m, const area *a, size_t steps, int16_t *to) {
    const size_t remembered = qornn_remembers(&m->input);
    fill(to, a->kept, remembered, remembered);
    to += remembered;
    for (uint32_t i = 0; i < m->count; i++) {
        const lane *const l = a->lanes + i;
        fill(to, l->rows + steps * l->units, l->n_state, l->n_state);
        to += l->n_state;
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

/* `steps` of one layer, and what it gives. */
static qornn_given advance(const qornn_work *shared, lane *l, qornn_given now, qornn_given before, size_t steps) {
    qornn_work w = *shared;
    const qornn_given gives = {l->rows + l->units, l->units, NULL};
    if (l->way.many) {
        l->way.many(l->layer, l->rows, l->units, now, before, steps);
        return gives;
    }
    for (size_t k = 0; k < steps; k++) {
        w.h = l->rows + k * l->units;
        w.next = w.h + l->units;
        w.x_before = before.x ? before.x + k * before.apart : NULL;
        w.code_before = before.codes ? (size_t)before.codes[k] : 0;
        l->way.step(l->layer, &w, now.x ? now.x + k * now.apart : NULL, now.codes ? (size_t)now.codes[k] : 0);
    }
    return gives;
}

/* How many samples are outside the declared range; a missing one is not, where it is held. */
static int64_t outside(const qornn_input *p, const int16_t *raw, size_t n) {
    const int16_t low = p->low, high = p->high, missing = p->hold ? INT16_MIN : low;
    int64_t found = 0;
    for (size_t i = 0; i < n;) {
        uint16_t some = 0; /* wide registers hold many small counts */
        for (const size_t end = n - i < 4096 ? n : i + 4096; i < end; i++) {
            some = (uint16_t)(some + ((raw[i] < low && raw[i] != missing) || raw[i] > high));
        }
        found += some;
    }
    return found;
}

/* The next `steps` of a sequence through all layers: codes, or n_i samples each. */
static int take(const qornn_host_model *m, area *a, const int16_t *raw, size_t steps) {
    qornn_given now = {a->x, m->input.room, NULL}, before = {NULL, 0, NULL};
    for (size_t k = 0; k < steps; k++) {
        if (qornn_remembers(&m->input)) {
            qornn_remember(&m->input, raw + k * m->input.n_i, a->kept, a->x + k * m->input.room);
        } else if (m->input.kind != QORNN_CODES) {
            qornn_quantize(&m->input, raw + k * m->input.n_i, a->x + k * m->input.room);
        } else if (!qornn_is_code(&m->input, raw[k])) {
            return QORNN_BAD_CODE;
        }
    }
    if (m->input.kind == QORNN_CODES) {
        now.x = NULL;
        now.codes = raw;
    }
    for (uint32_t i = 0; i < m->count; i++) {
        const qornn_given gives = advance(&a->shared, a->lanes + i, now, before, steps);
        before = now;
        now = gives;
    }
    return QORNN_OK;
}

/* What is wanted of step t of sequence b, whose outputs are in row k; past the end of the sequence k is 0. */
static void give(const qornn_host_model *m, const qornn_batch *batch, size_t b, size_t t, area *a, size_t k) {
    const lane *const end = a->lanes + m->count - 1, *const shown = a->shown;
    const size_t row = b * (size_t)batch->T + t;
    a->last.h = k ? end->rows + k * end->units : a->zeros;
    if (k && m->readout.steps == QORNN_MEAN) {
        qornn_mean_add(&m->readout, a->last.h, a->last.held, &a->last.count);
    }
    if (batch->states) {
        fill(batch->states + row * shown->n_state, k ? shown->rows + k * shown->units : a->zeros, shown->n_state,
             shown->n_state);
    }
    if (batch->y && m->readout.steps == QORNN_ALL) {
        qornn_host_read(m, &a->last, batch->y, row);
    }
}

/* Sequence b. */
static int run_one(const qornn_host_model *m, qornn_batch *batch, size_t b, area *a) {
    const size_t T = (size_t)batch->T, length = (size_t)batch->lengths[b];
    const size_t width = m->input.kind == QORNN_CODES ? 1 : m->input.n_i;
    const int16_t *raw = batch->x + b * T * width;
    size_t kept = qornn_remembers(&m->input), steps = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        kept += a->lanes[i].n_state;
    }
    begin(m, a, batch->h ? batch->h + b * kept : NULL, length);
    begin_mean(m, batch, b, a);
    batch->outside += m->input.kind == QORNN_CODES ? 0 : outside(&m->input, raw, length * width);
    for (size_t t = 0; t < length; t += steps, raw += steps * width) {
        for (uint32_t i = 0; t && i < m->count; i++) {
            lane *const l = a->lanes + i;
            fill(l->rows, l->rows + steps * l->units, l->n_state, l->n_state); /* where the last steps ended */
        }
        steps = length - t < AHEAD ? length - t : AHEAD;
        const int bad = take(m, a, raw, steps);
        if (bad) {
            return bad;
        }
        for (size_t k = 0; k < steps; k++) {
            give(m, batch, b, t + k, a, k + 1);
        }
    }
    if (batch->h) {
        keep(m, a, steps, batch->h + b * kept);
    }
    if (batch->sums) {
        keep_mean(m, batch, b, a);
    }
    if (batch->y && m->readout.steps != QORNN_ALL) {
        qornn_host_read(m, &a->last, batch->y, b);
    }
    for (size_t t = length; t < T && (batch->states || m->readout.steps == QORNN_ALL); t++) {
        give(m, batch, b, t, a, 0);
    }
    return QORNN_OK;
}

int qornn_run(const qornn_host_model *m, qornn_batch *batch, int kernel) {
    area a;
    batch->outside = 0;
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
