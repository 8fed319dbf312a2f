/* The recurrent layer in plain C, and the choice of its kernel. */
#include "../qornn_dense.h"
#include "qornn_host.h"
#include "qornn_wide.h"

static void of_bytes(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    const qornn_host_recurrent *m = (const qornn_host_recurrent *)layer;
    const size_t n_h = m->layer.n_h;
    for (size_t j = 0; j < n_h; j++) {
        const int8_t *row = m->W_bytes + j * m->row_bytes;
        int32_t sum = 0; /* signed weights: every partial sum was proved to fit */
        for (size_t n = 0; n < n_h; n++) {
            sum += row[n] * w->h[n];
        }
        w->sums[j] = sum;
    }
    qornn_wide_drive(m, x, code, w->drive);
    qornn_wide_next(&m->layer, w, qornn_wide_none);
}

static void packed(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    qornn_dense(&((const qornn_host_recurrent *)layer)->layer, x, code, w->h, w->next);
}

static size_t units(const void *layer) { return ((const qornn_host_recurrent *)layer)->layer.n_h; }

static qornn_host_way choose(const void *layer, int kernel) {
    const qornn_host_recurrent *m = (const qornn_host_recurrent *)layer;
    qornn_host_way way = {QORNN_PORTABLE, m->W_bytes ? of_bytes : packed, NULL};
    qornn_host_step step;
    if (m->layer.recurrent != QORNN_DENSE) {
        way.step = qornn_host_structured;
    } else if ((kernel < 0 || kernel == QORNN_VNNI) && (step = qornn_host_vnni(m)) != NULL) {
        way.kernel = QORNN_VNNI;
        way.step = step;
    } else if ((kernel < 0 || kernel == QORNN_AVX2) && (step = qornn_host_avx2(m)) != NULL) {
        way.kernel = QORNN_AVX2;
        way.step = step;
    }
    return way;
}

const qornn_host_kind qornn_host_recurrent_kind = {units, units, choose};
