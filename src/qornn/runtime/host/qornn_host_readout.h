/* Reading out the last layer. */
#ifndef QORNN_HOST_READOUT_H
#define QORNN_HOST_READOUT_H

#include "qornn_host.h"

typedef struct {
    const int16_t *h; /* outputs of the last layer */
    int32_t *sums;    /* room for as many */
    int32_t *held;    /* of a mean: the sums of all steps, and how many */
    uint32_t count;
    float *totals; /* room for n_o */
} qornn_last;

/* Row `row` of y. */
void qornn_host_read(const qornn_host_model *m, const qornn_last *last, void *y, size_t row);

#endif
