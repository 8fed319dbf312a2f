#include "qornn_nofuse.h"

void qornn_readout_mix_float(const QORNN_FLASH float *V, const QORNN_FLASH float *b_o, float scale, size_t n_o,
                             size_t n_h, int relu, const int16_t *narrow, const int32_t *wide, float *y) {
    for (size_t o = 0; o < n_o; o++) {
        y[o] = 0.0f;
    }
    for (size_t j = 0; j < n_h; j += 4) {
        int32_t seen[4];
        qornn_mix(narrow, wide, n_h, relu, j, seen);
        for (size_t k = 0; k < 4 && j + k < n_h; k++) {
            const float unit = (float)seen[k];
            for (size_t o = 0; o < n_o; o++) {
                y[o] = y[o] + qornn_product(unit, *V++);
            }
        }
    }
    for (size_t o = 0; o < n_o; o++) {
        y[o] = qornn_product(y[o], scale) + b_o[o];
    }
}
