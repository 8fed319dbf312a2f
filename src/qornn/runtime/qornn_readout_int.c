#include "qornn.h"

void qornn_readout_int(const QORNN_FLASH int8_t *V, const QORNN_FLASH int32_t *b_o, size_t n_o, size_t n_h, int relu,
                       const int16_t *h, int32_t *y) {
    for (size_t o = 0; o < n_o; o++, V += n_h) {
        int32_t sum = b_o[o];
        for (size_t j = 0; j < n_h; j++) {
            const int32_t seen = relu && h[j] < 0 ? 0 : h[j];
            sum += V[j] * seen;
        }
        y[o] = sum;
    }
}
