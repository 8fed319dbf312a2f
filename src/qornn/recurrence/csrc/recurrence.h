/* h_t = act(W h_{t-1} + U x_t + b), y_t = V h_t + b_o, and their gradients, float32, as a plain C interface.
 *
 * Every array is dense and row-major unless strides are given. The caller owns every array named here. */
#ifndef QORNN_RECURRENCE_H
#define QORNN_RECURRENCE_H

#include <stdint.h>

/* The only names the library shows. */
#if defined(_WIN32)
#define QORNN_API __declspec(dllexport)
#else
#define QORNN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum qornn_activation { QORNN_RELU = 0, QORNN_MODRELU = 1, QORNN_IDENTITY = 2, QORNN_TANH = 3 };

/* What forward and backward share. Of `x` and `codes` one is given and the other null, and so of `W` and `u`. */
typedef struct {
  int64_t B, T, n_i, n_h, n_o;
  int32_t activation, threads;
  int32_t readout_relu;   /* not 0: y_t = V relu(h_t) + b_o */
  const float *x;         /* (B, T, n_i) */
  const int64_t *codes;   /* (B, T): one-hot inputs */
  const float *W;         /* (n_h, n_h) */
  const float *u;         /* (n_h): W = diag(u) S/sqrt(n_h), S Sylvester's matrix, n_h a power of two */
  const float *U;         /* (n_h, n_i) */
  const float *b;         /* (n_h), null: none; modReLU adds it to the magnitude */
  const float *V;         /* (n_o, n_h), null: no readout */
  const float *b_o;       /* (n_o) */
  const float *h0;        /* (B, n_h) */
  const int64_t *lengths; /* (B), null: all of length T */
  float *h;               /* (T, B, n_h): written by forward, read by backward; zero past a sequence's end */
  float *y;               /* (T, B, n_o): written by forward, null without a readout */
} qornn_problem;

typedef struct {
  const float *states; /* gradient of h, (b, t, j) at b*states_b + t*states_t + j; may be null */
  int64_t states_b, states_t;
  const float *dy; /* gradient of y, (b, t, o) at b*dy_b + t*dy_t + o; null without a readout */
  int64_t dy_b, dy_t;
  const float *last; /* (B, n_h): gradient of the state at each sequence's end; may be null */
  float *dW;         /* (n_h, n_h), of u (n_h), out; null when not needed, which saves a third of the time */
  float *dU;         /* (n_h, n_i), out */
  float *db;         /* (n_h), out; null without b */
  float *dV;         /* (n_o, n_h), out; null without a readout */
  float *dz0;        /* (B, n_h), out: gradient before the activation of the first step */
  float *dz;         /* (T, B, n_h), out: the same of every step; null when not needed */
} qornn_gradients;

/* 0, or -1 when memory ran out. The result is the same bits each time for a given number of threads. */
QORNN_API int qornn_forward(const qornn_problem *problem);
QORNN_API int qornn_backward(const qornn_problem *problem, const qornn_gradients *gradients);

/* Run on somebody else's threads: parallel(work, data, threads, 0) calls work(data) on up to that many, as GOMP_parallel
 * does. Null, the default, starts threads of our own for each call. */
typedef void (*qornn_parallel)(void (*work)(void *), void *data, unsigned threads, unsigned flags);
QORNN_API void qornn_use_threads(qornn_parallel parallel);

/* The instruction set in use: "avx512", "avx2", "neon" or "generic". */
QORNN_API const char *qornn_isa(void);

/* Use that instruction set from now on, for tests; -1 when this processor or this build lacks it. */
QORNN_API int qornn_use_isa(const char *name);

#ifdef __cplusplus
}
#endif
#endif
