/* Rotations in plain C, and the choice of their kernel. */
#include "qornn_pairs.h"

static void of_bytes(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    qornn_pairs_rotations((const qornn_host_rotations *)layer, w, x, code, NULL);
}

static void packed(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    const qornn_rotations *p = &((const qornn_host_rotations *)layer)->layer;
    for (size_t j = 0; j < 2 * p->pairs; j++) {
        w->next[j] = w->h[j]; /* devices turn them in place */
    }
    qornn_rotations_step(p, x, code, w->next);
}

static size_t units(const void *layer) { return 2 * (size_t)((const qornn_host_rotations *)layer)->layer.pairs; }

static qornn_host_way choose(const void *layer, int kernel) {
    const qornn_host_rotations *m = (const qornn_host_rotations *)layer;
    qornn_host_way way = {QORNN_PORTABLE, m->U_bytes ? of_bytes : packed, NULL};
    qornn_host_many many;
    qornn_host_step step;
    if ((kernel < 0 || kernel == QORNN_VNNI) && (many = qornn_host_rotations_vnni(m)) != NULL) {
        way.kernel = QORNN_VNNI;
        way.many = many;
    } else if ((kernel < 0 || kernel == QORNN_AVX2) && (step = qornn_host_rotations_avx2(m)) != NULL) {
        way.kernel = QORNN_AVX2;
        way.step = step;
    }
    return way;
}

const qornn_host_kind qornn_host_rotations_kind = {units, units, choose};
