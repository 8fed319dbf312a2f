/* The host engine: whole sequences at once, and kernels for wide registers. Not needed on a device. */
#ifndef QORNN_HOST_H
#define QORNN_HOST_H

#include "qornn.h"

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

/* A program, and its matrices in the order wide registers want them (null where unused).
   W and U lie one byte per weight: rows of W padded to row_bytes, U column by column, along which wide registers run.
   Without these bytes a step is that of a device, from the program's own packed weights. With mix V is in V_columns, or in V_int column by column. */
typedef struct {
    qornn_program program;
    const int8_t *W_bytes, *U_bytes;
    const int8_t *W_blocks;  /* VNNI: 16 rows x 4 columns a block, 64-byte aligned, blocks along each 16 rows */
    const int32_t *W_start;  /* VNNI: -2^15 sum_j W_i[i, j] modulo 2^32, to a multiple of 16 rows */
    const float *V_columns;  /* V column by column */
    uint32_t row_bytes;      /* from one row of W_bytes to the next, a multiple of 64 */
} qornn_host_model;

typedef struct {
    int64_t B, T;
    const int16_t *x;       /* (B, T, n_i) raw samples or (B, T) codes */
    const int64_t *lengths; /* (B), each in 1..T */
    int16_t *h;             /* (B, n_h) states to go on from and to leave, or null to start from zero */
    int16_t *states;        /* (B, T, n_h), or null */
    void *y;                /* (B, n_o) or (B, T, n_o), float or int32, or null */
    void *work;             /* qornn_work_bytes */
} qornn_batch;

/* The work area of a kernel, aligned to 64 bytes. */
typedef struct {
    int16_t *h, *next; /* QORNN_UNITS(n_h, 64) */
    int16_t *spread;   /* as many again: the state as the kernel wants it */
    int32_t *sums, *drive; /* QORNN_UNITS(n_h, 64) */
    int16_t *x;        /* qornn_inputs */
    float *totals;     /* n_o */
} qornn_work;

typedef void (*qornn_host_step)(const qornn_host_model *m, const qornn_work *w, const int16_t *x, size_t code);

QORNN_EXPORT size_t qornn_work_bytes(const qornn_host_model *m);

/* Run every sequence; QORNN_BAD_CODE at the first code that is not in the table. A kernel this machine or these arrays
   do not have is replaced by the portable one. */
QORNN_EXPORT int qornn_run(const qornn_host_model *m, const qornn_batch *batch, int kernel);

/* The kernel that would really run when this one is asked for; the best there is for a negative number. */
QORNN_EXPORT int qornn_kernel(const qornn_host_model *m, int kernel);

/* FNV-1a of the name, place and size of every field of qornn_host_model and qornn_batch: whoever mirrors the structs
   makes the same number, and knows a library of another version by it. */
QORNN_EXPORT uint32_t qornn_abi(void);

/* For a W that is not stored. */
void qornn_host_structured(const qornn_host_model *m, const qornn_work *w, const int16_t *x, size_t code);

/* w->sums = S h. */
void qornn_host_mix(const qornn_program *p, const qornn_work *w);

/* Null where they cannot run. */
qornn_host_step qornn_host_avx2(const qornn_host_model *m);
qornn_host_step qornn_host_vnni(const qornn_host_model *m);

#ifdef __cplusplus
}
#endif

#endif
