#include "qornn_stream.h"

void qornn_readout_mix_packed(const QORNN_FLASH uint8_t *V, unsigned bits, const QORNN_FLASH int32_t *b_o, size_t n_o,
                              size_t n_h, int relu, const int16_t *narrow, const int32_t *wide, int32_t *y) {
    qornn_fields fields = {V, 0, 0};
    for (size_t o = 0; o < n_o; o++) {
        y[o] = b_o[o];
    }
    for (size_t j = 0; j < n_h; j += 4) {
        int32_t seen[4];
        qornn_mix(narrow, wide, n_h, relu, j, seen);
        for (size_t k = 0; k < 4 && j + k < n_h; k++) {
            QORNN_ROLLED
            for (size_t o = 0; o < n_o; o++) {
                y[o] += qornn_next_field(&fields, bits) * seen[k];
            }
        }
    }
}
