/* A W that is not stored, on the host: all sums first, in loops that compilers turn into wide instructions. Devices do the
   same in place (qornn_structured.h). */
#include "../qornn_structured.h"
#include "qornn_host.h"
#include "qornn_wide.h"

/* S of each block of `block` sums, one stage at a time. */
static void transform(int32_t *sums, size_t n, size_t block) {
    for (size_t apart = 1; apart < block; apart *= 2) {
        for (size_t group = 0; group < n; group += 2 * apart) {
            int32_t *const a = sums + group, *const b = a + apart;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
            for (size_t i = 0; i < apart; i++) {
                const int32_t sum = a[i] + b[i], difference = a[i] - b[i];
                a[i] = sum;
                b[i] = difference;
            }
        }
    }
}

static void negate(const uint8_t *signs, int32_t *sums, size_t n) {
    for (size_t j = 0; j < n; j++) {
        const int32_t negative = -(int32_t)(signs[j / 8] >> (j % 8) & 1);
        sums[j] = (sums[j] ^ negative) - negative;
    }
}

static void widen(const int16_t *h, int32_t *sums, size_t n) {
    for (size_t j = 0; j < n; j++) {
        sums[j] = h[j];
    }
}

static void hadamard(const qornn_recurrent *p, const int16_t *h, int32_t *sums, int32_t *spare) {
    const size_t n = p->n_h, block = p->block, blocks = n / block;
    int32_t *const mixed = blocks == 1 ? sums : spare;
    widen(h, mixed, n);
    transform(mixed, n, block);
    for (size_t k = 0; blocks > 1 && k < block; k++) {
        for (size_t b = 0; b < blocks; b++) {
            sums[k * blocks + b] = mixed[b * block + k];
        }
    }
    negate(p->signs, sums, n);
}

static void cycle(const qornn_recurrent *p, const int16_t *h, int32_t *sums) {
    widen(h, sums + 1, p->n_h - 1);
    sums[0] = -(int32_t)h[p->n_h - 1];
}

static void delay(const qornn_recurrent *p, const int16_t *h, int32_t *sums, int32_t *spare) {
    const size_t n = p->n_h, lines = p->block;
    int32_t along = 1; /* sqrt(lines) */
    while ((size_t)along * (size_t)along < lines) {
        along *= 2;
    }
    for (size_t j = 1; j < n; j++) {
        sums[j] = along * h[j - 1];
    }
    size_t j = 0;
    for (size_t i = 0; i < lines; i++) {
        j += qornn_line(p, i);
        spare[i] = h[j - 1];
    }
    transform(spare, lines, lines);
    negate(p->signs, spare, lines);
    j = 0;
    for (size_t i = 0; i < lines; i++) {
        sums[j] = spare[i];
        j += qornn_line(p, i);
    }
}

void qornn_host_mix(const int16_t *h, int32_t *sums, size_t n) {
    widen(h, sums, n);
    transform(sums, n, n);
}

void qornn_host_structured(const void *layer, const qornn_work *w, const int16_t *x, size_t code) {
    const qornn_host_recurrent *m = (const qornn_host_recurrent *)layer;
    const qornn_recurrent *p = &m->layer;
    if (p->recurrent == QORNN_HADAMARD) {
        hadamard(p, w->h, w->sums, w->drive); /* the inputs come after */
    } else if (p->recurrent == QORNN_CYCLE) {
        cycle(p, w->h, w->sums);
    } else {
        delay(p, w->h, w->sums, w->drive);
    }
    qornn_wide_drive(m, x, code, w->drive);
    qornn_wide_next(p, w, qornn_wide_none);
}
