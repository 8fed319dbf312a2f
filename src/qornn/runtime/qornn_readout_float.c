#include "qornn_nofuse.h"

#include "qornn.h"

void qornn_readout_float(const float *V, const float *b_o, float scale, size_t n_o, size_t n_h, int relu,
                         const int16_t *h, float *y) {
    for (size_t o = 0; o < n_o; o++, V += n_h) {
        float sum = 0.0f;
        for (size_t j = 0; j < n_h; j++) {
            const int16_t seen = relu && h[j] < 0 ? (int16_t)0 : h[j];
            const float product = (float)seen * V[j];
            sum = sum + product;
        }
        const float scaled = sum * scale;
        y[o] = scaled + b_o[o];
    }
}
