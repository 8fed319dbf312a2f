/* The host engine: whole sequences at once, and kernels for wide registers. Not needed on a device. */
#ifndef QORNN_HOST_H
#define QORNN_HOST_H

#include "../qornn_input.h"
#include "../qornn_mix_layer.h"
#include "../qornn_readout.h"
#include "../qornn_recurrent.h"
#include "../qornn_rotations.h"
#include "qornn_cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define QORNN_X86 1
#else
#define QORNN_X86 0
#endif

#if defined(_WIN32)
#define QORNN_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define QORNN_EXPORT __attribute__((visibility("default")))
#else
#define QORNN_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { QORNN_PORTABLE, QORNN_AVX2, QORNN_VNNI };

#define QORNN_HOST_UNITS 64u /* states and rows of bytes are padded to this, so that no register is partly used */

enum { QORNN_RECURRENT, QORNN_ROTATIONS, QORNN_MIX }; /* kind of a layer */

/* A recurrent layer, and its matrices in the order wide registers want them (null where unused).
   W and U lie one byte a weight, or packed as on a device; W_planes then has 8 words to spare after the end. */
typedef struct {
    qornn_recurrent layer;
    uint32_t row_bytes;     /* from one row of W_bytes to the next, a multiple of 64 */
    const int8_t *W_bytes;  /* rows */
    const int8_t *U_bytes;  /* columns, along which wide registers run */
    const int8_t *W_blocks; /* VNNI: 16 rows x 4 columns a block, 64-byte aligned, blocks along each 16 rows */
    const int32_t *W_start; /* VNNI: -2^15 sum_j W_i[i, j] modulo 2^32, to a multiple of 16 rows */
} qornn_host_recurrent;

/* Matrices of the two below: columns of bytes, or as in qornn_pairs.h, or packed as on a device (null where unused). */
typedef struct {
    qornn_rotations layer; /* its turns are in turns_wide */
    const int8_t *U_bytes;
    const int16_t *U_pairs;    /* the real rows, then the imaginary ones, each to a multiple of 16 */
    const int16_t *turn_pairs; /* (a, -b) of each pair, to a multiple of 16, then (b, a) */
} qornn_host_rotations;

typedef struct {
    qornn_mix_layer layer;
    const int8_t *C_bytes;
    const int8_t *S_bytes;
    const int16_t *C_pairs;
    const int16_t *S_pairs;
} qornn_host_mix_layer;

typedef struct {
    uint32_t kind;
    const void *layer; /* as qornn_host_recurrent, or of another kind */
} qornn_host_layer;

/* With mix V is in V_columns, or in V_int column by column. */
typedef struct {
    qornn_input input;
    qornn_readout readout;
    const float *V_columns; /* V column by column */
    uint32_t count;
    const qornn_host_layer *layers;
} qornn_host_model;

typedef struct {
    int64_t B;
    int64_t T;
    const int16_t *x;       /* (B, T, n_i) raw samples or (B, T) codes */
    const int64_t *lengths; /* (B), each in 1..T */
    int16_t *h;             /* (B, states of the input and all layers) to go on from and to leave, or null for zeros */
    int32_t *sums;          /* (B, outputs of the last layer) of a mean, as h */
    uint32_t *counts;       /* (B) */
    int16_t *states;        /* (B, T, n) of the last layer that has any, or null */
    void *y;                /* (B, n_o) or (B, T, n_o), float or int32, or null */
    void *work;             /* qornn_work_bytes */
    int64_t outside;        /* to leave: samples outside the declared range, each clamped to it */
} qornn_batch;

/* What a layer works on, aligned to 64 bytes: its own states, and room that all layers share. */
typedef struct {
    int16_t *h, *next;       /* QORNN_UNITS(n_h, 64), zero past its own */
    int16_t *spread;         /* as many again: the state as the kernel wants it */
    int32_t *sums, *drive;   /* QORNN_UNITS(n_h, 64) */
    const int16_t *x_before; /* what the layer before was given: numbers, or null and a code */
    size_t code_before;
} qornn_work;

/* next from h and either x_i or a code; then x is null. */
typedef void (*qornn_host_step)(const void *layer, const qornn_work *w, const int16_t *x, size_t code);

/* What a layer is given at steps 0, 1, ...: numbers, `apart` from one to the next, or null and codes. */
typedef struct {
    const int16_t *x;
    size_t apart;
    const int16_t *codes;
} qornn_given;

/* Several steps at once: from row 0, its state before them, to rows 1, 2, ..., `units` from one to the next. */
typedef void (*qornn_host_many)(const void *layer, int16_t *rows, size_t units, qornn_given now, qornn_given before,
                                size_t steps);

/* How a layer is run: by one of the two; the other is null. */
typedef struct {
    int kernel;
    qornn_host_step step;
    qornn_host_many many;
} qornn_host_way;

/* What the engine asks of a kind of layer. */
typedef struct {
    size_t (*states)(const void *layer); /* numbers that it keeps from step to step */
    size_t (*outputs)(const void *layer);
    qornn_host_way (*way)(const void *layer, int kernel); /* by the kernel asked for, or the best there is */
} qornn_host_kind;

extern const qornn_host_kind qornn_host_recurrent_kind, qornn_host_rotations_kind, qornn_host_mix_kind;

QORNN_EXPORT size_t qornn_work_bytes(const qornn_host_model *m);

/* Run every sequence; QORNN_BAD_CODE at the first code that is not in the table. A kernel this machine or this layout
   does not have is replaced by the portable one. */
QORNN_EXPORT int qornn_run(const qornn_host_model *m, qornn_batch *batch, int kernel);

/* The best kernel that would really run some layer when this one is asked for; the best there is for a negative number. */
QORNN_EXPORT int qornn_kernel(const qornn_host_model *m, int kernel);

/* SHA-256 of the headers this was compiled from, in hexadecimal: who mirrors their structs knows another version by it. */
QORNN_EXPORT const char *qornn_digest(void);

/* For a W that is not stored. */
void qornn_host_structured(const void *layer, const qornn_work *w, const int16_t *x, size_t code);

/* sums = S h. */
void qornn_host_mix(const int16_t *h, int32_t *sums, size_t n);

#if QORNN_X86
/* Whether the processor has all of these of qornn_cpu.h. */
int qornn_host_has(unsigned wanted);
#endif

/* Null where they cannot run. */
qornn_host_step qornn_host_avx2(const qornn_host_recurrent *m);
qornn_host_step qornn_host_vnni(const qornn_host_recurrent *m);
qornn_host_step qornn_host_rotations_avx2(const qornn_host_rotations *m);
qornn_host_many qornn_host_rotations_vnni(const qornn_host_rotations *m);
qornn_host_step qornn_host_mix_avx2(const qornn_host_mix_layer *m);
qornn_host_many qornn_host_mix_vnni(const qornn_host_mix_layer *m);

#ifdef __cplusplus
}
#endif

#endif
