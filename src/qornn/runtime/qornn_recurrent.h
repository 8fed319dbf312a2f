/* The recurrent layer as const data.

       acc  = sum W_i h_i and sum U_i x_i     32 bits: the program was proved not to overflow when it was built
       h_i' = requant(activation(acc))        k_a bits */
#ifndef QORNN_RECURRENT_H
#define QORNN_RECURRENT_H

#include "qornn.h"

enum { QORNN_CODES, QORNN_SAMPLES };                                     /* input: a code reads a column of U */
enum { QORNN_RELU, QORNN_MODRELU, QORNN_IDENTITY };                      /* activation */
enum { QORNN_MULTIPLIER, QORNN_THRESHOLDS, QORNN_PER_ROW, QORNN_SHIFT }; /* requant */
enum { QORNN_DENSE, QORNN_HADAMARD, QORNN_CYCLE, QORNN_DELAY };          /* recurrent */

typedef struct {
    qornn_count n_i;
    qornn_count n_h;
    uint8_t bits_W;
    uint8_t bits_U;
    uint8_t bits_h;
    uint8_t input;
    uint8_t activation;
    uint8_t requant;

    /* W that is not stored but known. */
    uint8_t recurrent;
    uint8_t moves;     /* DELAY: units along a line keep their value; U, bias and M_W have a row for each line only */
    qornn_count block; /* HADAMARD: units that one transform mixes; DELAY: lines */
    const QORNN_FLASH uint8_t *signs; /* bit j % 8 of byte j / 8: whether row j (DELAY: line j) is negated */

    /* W that is stored: its planes, row by row (qornn_plane.h). */
    const QORNN_FLASH uint32_t *W_planes;

    /* U, in one of these forms: row by row in planes, as W, whose kernels then multiply it too; or column by column, of
       2, 4 or 8 bits as two's complement fields in words, lowest bit first, each column in whole words; or as one stream
       of fields u + 2^(bits_U-1), field c n_h + j, lowest bit first, with one byte to spare after the end. */
    const QORNN_FLASH uint32_t *U_planes;
    const QORNN_FLASH uint32_t *U_words;
    const QORNN_FLASH uint8_t *U_packed;

    /* Scheme paper: acc = 2^shift_W sum W_i h_i + 2^shift_U sum U_i x_i. MULTIPLIER: (acc multiplier + half) >> shift;
       SHIFT: (acc + half) >> shift, proved to fit 32 bits; THRESHOLDS: 2^(bits_h-1) - 1 of them. */
    const QORNN_FLASH int32_t *bias; /* modReLU, or identity where there is one */
    uint8_t shift_W;
    uint8_t shift_U;
    uint8_t shift;
    uint32_t multiplier;
    const QORNN_FLASH int32_t *thresholds;

    /* Scheme per-row: M_W sum W_i h_i + M_U sum U_i x_i (+ M_I h_i[j] with the identity offset), in 64 bits. */
    const QORNN_FLASH int64_t *bias_wide;
    const QORNN_FLASH int32_t *M_W;
    const QORNN_FLASH int32_t *M_U;
    const QORNN_FLASH int32_t *M_I;
    const QORNN_FLASH uint8_t *row_shift;
    uint8_t alike; /* one multiplier of each kind and one shift serve every row */
} qornn_recurrent;

#endif
