/* One time step where W turns pairs of units by 90 degrees: in place. */
#ifndef QORNN_TURN_H
#define QORNN_TURN_H

#include "qornn_drive.h"
#include "qornn_requant.h"

QORNN_INLINE void qornn_turn(const qornn_recurrent *p, const int16_t *x, size_t code, int16_t *h) {
    for (size_t j = 0; j < p->n_h; j += 2) {
        const int32_t a = h[j], b = h[j + 1];
        h[j] = qornn_next(p, j, -b, qornn_drive(p, x, code, j), 0);
        h[j + 1] = qornn_next(p, j + 1, a, qornn_drive(p, x, code, j + 1), 0);
    }
}

#endif
