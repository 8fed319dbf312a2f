#include "qornn_plane.h"

void qornn_plane1(const QORNN_FLASH uint32_t *rows, size_t stride, size_t words, const int16_t *h, uint32_t sums[4]) {
    qornn_plane(1, rows, stride, words, h, sums);
}
