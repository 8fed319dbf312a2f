#include "qornn_plane.h"

void qornn_plane8(const QORNN_FLASH uint32_t *rows, size_t stride, size_t words, const int16_t *h, uint32_t sums[4]) {
    qornn_plane(8, rows, stride, words, h, sums);
}
