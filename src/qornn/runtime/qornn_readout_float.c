#include "qornn_nofuse.h"

void qornn_readout_float(const QORNN_FLASH float *V, const QORNN_FLASH float *b_o, float scale, size_t n_o, size_t n_h,
                         int relu, const int16_t *h, float *y) {
    for (size_t o = 0; o < n_o; o++, V += n_h) {
        float sum = 0.0f;
        for (size_t j = 0; j < n_h; j++) {
            const int16_t seen = relu && h[j] < 0 ? (int16_t)0 : h[j];
            sum = sum + qornn_product((float)seen, V[j]);
        }
        y[o] = qornn_product(sum, scale) + b_o[o];
    }
}
