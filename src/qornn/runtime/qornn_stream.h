/* V of few bits, row by row in one stream of fields v + 2^(bits-1), lowest bit first: y = V h + b_o.
   The state has 16 or 32 bits; the other pointer is null, and gone once this is inlined. */
#ifndef QORNN_STREAM_H
#define QORNN_STREAM_H

#include "qornn.h"

/* What the readout sees of unit j; `hidden` is -1 where it does not see what is negative, or 0. */
QORNN_INLINE int32_t qornn_seen(const int16_t *narrow, const int32_t *wide, int32_t hidden, size_t j) {
    const int32_t unit = wide ? wide[j] : narrow[j];
    return unit & ~(unit >> 31 & hidden);
}

/* Two fields per byte, the usual width: no field is looked for. */
QORNN_INLINE void qornn_stream_halves(const QORNN_FLASH uint8_t *V, const QORNN_FLASH int32_t *b_o, size_t n_o,
                                      size_t n_h, int32_t hidden, const int16_t *narrow, const int32_t *wide,
                                      int32_t *y) {
    for (size_t o = 0; o < n_o; o++) {
        int32_t sum = b_o[o];
        QORNN_ROLLED
        for (size_t j = 0; j < n_h; j += 2) {
            const int32_t two = *V++;
            sum += ((two & 15) - 8) * qornn_seen(narrow, wide, hidden, j);
            sum += ((two >> 4) - 8) * qornn_seen(narrow, wide, hidden, j + 1);
        }
        y[o] = sum;
    }
}

/* The fields of a stream one after another, and the bits that were read but not used. */
typedef struct {
    const QORNN_FLASH uint8_t *next;
    uint32_t ahead;
    unsigned left;
} qornn_fields;

QORNN_INLINE int32_t qornn_next_field(qornn_fields *from, unsigned bits) {
    if (from->left < bits) {
        from->ahead |= (uint32_t)*from->next++ << from->left;
        from->left += 8;
    }
    const int32_t v = (int32_t)(from->ahead & ((1u << bits) - 1u)) - (1 << (bits - 1));
    from->ahead >>= bits;
    from->left -= bits;
    return v;
}

QORNN_INLINE void qornn_stream_outputs(const QORNN_FLASH uint8_t *V, unsigned bits, const QORNN_FLASH int32_t *b_o,
                                       size_t n_o, size_t n_h, int relu, const int16_t *narrow, const int32_t *wide,
                                       int32_t *y) {
    const int32_t hidden = relu ? -1 : 0;
    if (bits == 4 && n_h % 2 == 0) {
        qornn_stream_halves(V, b_o, n_o, n_h, hidden, narrow, wide, y);
        return;
    }
    qornn_fields fields = {V, 0, 0};
    for (size_t o = 0; o < n_o; o++) {
        int32_t sum = b_o[o];
        QORNN_ROLLED
        for (size_t j = 0; j < n_h; j++) {
            sum += qornn_next_field(&fields, bits) * qornn_seen(narrow, wide, hidden, j);
        }
        y[o] = sum;
    }
}

#endif
