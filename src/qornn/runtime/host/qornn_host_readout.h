/* Reading out the last layer. */
#ifndef QORNN_HOST_READOUT_H
#define QORNN_HOST_READOUT_H

#include "qornn_host.h"

typedef struct {
    const int16_t *h; /* states of the last layer */
    int32_t *sums;    /* room for as many */
    float *totals;    /* room for n_o */
} qornn_last;

/* Row `row` of y. */
void qornn_host_read(const qornn_host_model *m, const qornn_last *last, void *y, size_t row);

#endif
