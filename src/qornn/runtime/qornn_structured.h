/* One time step when W is not stored: sums by additions, then inputs and requantization as ever.

   HADAMARD    diag(signs) P (I x S), S of size `block`; one block: in place, 32-bit states; several: two buffers, since the
               permutation P takes what a block puts out to as many blocks as there are
   CYCLE       every unit takes the value of the one before it, the first that of the last, negated: in place
   DELAY       the same along each line; what comes out of the lines is mixed by diag(signs) S into their first units */
#ifndef QORNN_STRUCTURED_H
#define QORNN_STRUCTURED_H

#include "qornn_drive.h"
#include "qornn_requant.h"
#include "qornn_transform.h"

/* Sums of a block, or of all lines, that a step keeps there; more lie in the caller's state. */
#define QORNN_ON_STACK 64u

/* One unit after another: what compilers begin early, to hide the latency of greater machines, lands on the stack. */
#if defined(__GNUC__)
#define QORNN_IN_TURN() __asm__ volatile("" ::: "memory")
#else
#define QORNN_IN_TURN() ((void)0)
#endif

/* sum, or -sum where bit i says so. */
QORNN_INLINE int32_t qornn_signed(int32_t sum, uint32_t signs, unsigned i) {
    const int32_t negative = (int32_t)(signs << (31u - i)) >> 31;
#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP)
    int32_t one = negative | 1;
    __asm__ volatile("" : "+r"(one)); /* or it becomes a choice; so the product and the sum that follows are one MLA */
    return sum * one;
#else
    int32_t turned = (sum ^ negative) - negative;
#if defined(__GNUC__) && defined(__thumb__)
    __asm__("" : "+r"(turned)); /* or the difference is taken apart into more instructions */
#endif
    return turned;
#endif
}

QORNN_INLINE int32_t qornn_with_sign(const qornn_recurrent *p, size_t j, int32_t sum) {
    return qornn_signed(sum, p->signs[j / 8], j % 8);
}

/* The inputs of the eight units from j on, a multiple of 8: a column of U at a time, in words where it lies so. */
typedef struct {
    uint32_t words[2];
    int32_t x;         /* of one sample, or 1 for a code; in scheme paper times 2^shift_U */
    int32_t drives[8]; /* of several */
} qornn_eight;

/* Whether there is but one product a unit, which need not be kept. */
QORNN_INLINE int qornn_one_column(const qornn_recurrent *p) {
    return p->U_words && (p->n_i == 1 || p->input == QORNN_CODES);
}

QORNN_INLINE qornn_eight qornn_eight_words(const qornn_recurrent *p, size_t column, size_t j) {
    const QORNN_FLASH uint32_t *words = p->U_words + column * qornn_column_words(p) + j * p->bits_U / 32;
    qornn_eight eight;
    eight.words[0] = words[0] >> j * p->bits_U % 32;
    eight.words[1] = p->bits_U == 8 ? words[1] : 0;
    return eight;
}

/* Number i of the column. */
QORNN_INLINE int32_t qornn_eight_field(const qornn_recurrent *p, const qornn_eight *eight, unsigned i) {
    return qornn_field(eight->words[i * p->bits_U / 32], p->bits_U, i * p->bits_U % 32);
}

/* What all fields of one column are multiplied by. */
QORNN_INLINE int32_t qornn_only_x(const qornn_recurrent *p, const int16_t *x) {
    const int32_t only = p->input == QORNN_CODES ? 1 : x[0];
    return (int32_t)((uint32_t)only << (p->requant == QORNN_PER_ROW ? 0 : p->shift_U));
}

QORNN_INLINE qornn_eight qornn_eight_from(const qornn_recurrent *p, size_t j, const int16_t *x, int32_t only,
                                          size_t code) {
    if (qornn_one_column(p)) {
        qornn_eight eight = qornn_eight_words(p, code, j);
        eight.x = only;
        return eight;
    }
    qornn_eight sums;
    for (unsigned i = 0; i < 8; i++) {
        sums.drives[i] = p->U_words ? 0 : qornn_drive(p, x, code, j + i);
    }
    for (size_t c = 0; p->U_words && c < p->n_i; c++) {
        const qornn_eight column = qornn_eight_words(p, c, j);
        for (unsigned i = 0; i < 8; i++) {
            sums.drives[i] += qornn_eight_field(p, &column, i) * x[c];
        }
    }
    return sums;
}

/* The next state of unit j + i. */
QORNN_INLINE int32_t qornn_eight_next(const qornn_recurrent *p, size_t j, const qornn_eight *eight, unsigned i,
                                      int32_t sum) {
    if (!qornn_one_column(p)) {
        return qornn_next(p, j + i, sum, eight->drives[i], 0);
    }
    const int32_t drive = qornn_eight_field(p, eight, i) * eight->x;
    if (p->requant == QORNN_PER_ROW) {
        return qornn_next_per_row(p, j + i, sum, drive, 0);
    }
    return qornn_next_paper(p, j + i, (int32_t)(((uint32_t)sum << p->shift_W) + (uint32_t)drive));
}

/* The next states of units j + i to j + i + 3 from their sums, in place; with `mixed`, those are still to be mixed. */
QORNN_INLINE void qornn_four_next(const qornn_recurrent *p, size_t j, const qornn_eight *eight, unsigned i, int mixed,
                                  int32_t *h) {
    const uint32_t signs = p->signs[j / 8];
    if (mixed) {
        int32_t a = h[i], b = h[i + 1], c = h[i + 2], d = h[i + 3];
        qornn_mix4(&a, &b, &c, &d);
        h[i] = qornn_eight_next(p, j, eight, i, qornn_signed(a, signs, i));
        QORNN_IN_TURN();
        h[i + 1] = qornn_eight_next(p, j, eight, i + 1, qornn_signed(b, signs, i + 1));
        QORNN_IN_TURN();
        h[i + 2] = qornn_eight_next(p, j, eight, i + 2, qornn_signed(c, signs, i + 2));
        QORNN_IN_TURN();
        h[i + 3] = qornn_eight_next(p, j, eight, i + 3, qornn_signed(d, signs, i + 3));
        QORNN_IN_TURN();
        return;
    }
    h[i] = qornn_eight_next(p, j, eight, i, qornn_signed(h[i], signs, i));
    QORNN_IN_TURN();
    h[i + 1] = qornn_eight_next(p, j, eight, i + 1, qornn_signed(h[i + 1], signs, i + 1));
    QORNN_IN_TURN();
    h[i + 2] = qornn_eight_next(p, j, eight, i + 2, qornn_signed(h[i + 2], signs, i + 2));
    QORNN_IN_TURN();
    h[i + 3] = qornn_eight_next(p, j, eight, i + 3, qornn_signed(h[i + 3], signs, i + 3));
    QORNN_IN_TURN();
}

QORNN_INLINE void qornn_finish(const qornn_recurrent *p, const int16_t *x, size_t code, int mixed, int32_t *h) {
    const int32_t only = qornn_only_x(p, x);
    QORNN_ROLLED
    for (size_t j = 0; j < p->n_h; j += 8) {
        const qornn_eight eight = qornn_eight_from(p, j, x, only, code);
        qornn_four_next(p, j, &eight, 0, mixed, h + j);
        qornn_four_next(p, j, &eight, 4, mixed, h + j);
    }
}

/* HADAMARD of one block. */
QORNN_INLINE void qornn_hadamard(const qornn_recurrent *p, const int16_t *x, size_t code, int32_t *h) {
    const size_t n = p->n_h;
    const int eights = n >= 8, mixed = QORNN_BY_EIGHT && eights;
    qornn_transform(h, n, mixed ? 4 : 1);
    if (eights) {
        qornn_finish(p, x, code, mixed, h);
        return;
    }
    for (size_t j = 0; j < n; j++) {
        h[j] = qornn_next(p, j, qornn_with_sign(p, j, h[j]), qornn_drive(p, x, code, j), 0);
    }
}

/* HADAMARD of several blocks; work is room for one. */
QORNN_INLINE void qornn_blocks(const qornn_recurrent *p, const int16_t *x, size_t code, const int16_t *h, int16_t *next,
                               int32_t *work) {
    const size_t blocks = p->n_h / p->block;
    for (size_t b = 0; b < blocks; b++, h += p->block) {
        for (size_t k = 0; k < p->block; k++) {
            work[k] = h[k];
        }
        qornn_transform(work, p->block, 1);
        for (size_t k = 0, j = b; k < p->block; k++, j += blocks) {
            next[j] = qornn_next(p, j, qornn_with_sign(p, j, work[k]), qornn_drive(p, x, code, j), 0);
        }
    }
}

QORNN_INLINE void qornn_cycle(const qornn_recurrent *p, const int16_t *x, size_t code, int16_t *h) {
    const int32_t turned = -(int32_t)h[p->n_h - 1];
    const int32_t only = qornn_only_x(p, x);
    size_t j = p->n_h; /* from the end, so that no value is lost before it was read */
    while (j % 8) {
        j--;
        h[j] = qornn_next(p, j, j ? h[j - 1] : turned, qornn_drive(p, x, code, j), 0);
    }
    while (j) {
        j -= 8;
        const qornn_eight eight = qornn_eight_from(p, j, x, only, code);
        int16_t *at = h + j;
        at[7] = (int16_t)qornn_eight_next(p, j, &eight, 7, at[6]);
        at[6] = (int16_t)qornn_eight_next(p, j, &eight, 6, at[5]);
        at[5] = (int16_t)qornn_eight_next(p, j, &eight, 5, at[4]);
        at[4] = (int16_t)qornn_eight_next(p, j, &eight, 4, at[3]);
        at[3] = (int16_t)qornn_eight_next(p, j, &eight, 3, at[2]);
        at[2] = (int16_t)qornn_eight_next(p, j, &eight, 2, at[1]);
        at[1] = (int16_t)qornn_eight_next(p, j, &eight, 1, at[0]);
        at[0] = (int16_t)qornn_eight_next(p, j, &eight, 0, j ? h[j - 1] : turned);
    }
}

/* DELAY: from the first unit of line i to that of the next: all lengths differ, and are as even as that allows. */
QORNN_INLINE size_t qornn_line(const qornn_recurrent *p, size_t i) {
    const size_t lines = p->block, spread = p->n_h - lines * (lines - 1) / 2;
    return spread / lines + i + (i >= lines - spread % lines ? 1u : 0u);
}

/* work is room for one sum per line. */
QORNN_INLINE void qornn_delay(const qornn_recurrent *p, const int16_t *x, size_t code, int16_t *h, int32_t *work) {
    const size_t lines = p->block;
    int32_t along = 1; /* sqrt(lines): what all rows are in units of */
    while ((size_t)along * (size_t)along < lines) {
        along *= 2;
    }
    size_t j = 0;
    for (size_t i = 0; i < lines; i++) {
        j += qornn_line(p, i);
        work[i] = h[j - 1];
    }
    qornn_transform(work, lines, 1);
    j = p->n_h - 1;
    if (p->moves) {
        for (; j >= 4; j -= 4) {
            h[j] = h[j - 1];
            h[j - 1] = h[j - 2];
            h[j - 2] = h[j - 3];
            h[j - 3] = h[j - 4];
        }
    }
    for (; j > 0; j--) { /* first units too: they are written once more below */
        h[j] = p->moves ? h[j - 1] : qornn_next(p, j, along * h[j - 1], 0, 0);
    }
    for (size_t i = 0; i < lines; i++) {
        const size_t row = p->moves ? i : j;
        h[j] = qornn_next(p, row, qornn_with_sign(p, i, work[i]), qornn_drive(p, x, code, row), 0);
        j += qornn_line(p, i);
    }
}

#endif
