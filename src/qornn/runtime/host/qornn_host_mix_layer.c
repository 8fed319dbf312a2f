/* Mixes in plain C, and the choice of their kernel. */
#include "qornn_pairs.h"

static void of_bytes(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    qornn_pairs_mix((const qornn_host_mix_layer *)layer, w, x, code, NULL);
}

static void packed(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    const qornn_mix_layer *p = &((const qornn_host_mix_layer *)layer)->layer;
    qornn_mix_layer_step(p, x, code, w->x_before, w->code_before, w->next);
}

static size_t none(const void *layer) {
    (void)layer;
    return 0;
}

static size_t width(const void *layer) { return ((const qornn_host_mix_layer *)layer)->layer.width; }

static qornn_host_way choose(const void *layer, int kernel) {
    const qornn_host_mix_layer *m = (const qornn_host_mix_layer *)layer;
    qornn_host_way way = {QORNN_PORTABLE, m->C_bytes ? of_bytes : packed, NULL};
    qornn_host_many many;
    qornn_host_step step;
    if ((kernel < 0 || kernel == QORNN_VNNI) && (many = qornn_host_mix_vnni(m)) != NULL) {
        way.kernel = QORNN_VNNI;
        way.many = many;
    } else if ((kernel < 0 || kernel == QORNN_AVX2) && (step = qornn_host_mix_avx2(m)) != NULL) {
        way.kernel = QORNN_AVX2;
        way.step = step;
    }
    return way;
}

const qornn_host_kind qornn_host_mix_kind = {none, width, choose};
