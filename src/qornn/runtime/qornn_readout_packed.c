#include "qornn_stream.h"

void qornn_readout_packed(const QORNN_FLASH uint8_t *V, unsigned bits, const QORNN_FLASH int32_t *b_o, size_t n_o,
                          size_t n_h, int relu, const int16_t *h, int32_t *y) {
    qornn_stream_outputs(V, bits, b_o, n_o, n_h, relu, h, NULL, y);
}
