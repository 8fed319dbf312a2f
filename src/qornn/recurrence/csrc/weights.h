/* What a training step does to the weights of a stack before it reads them, one call per layer: their power-of-two
 * grids, lambda on its disc, steps that move, and inputs in whole units. The torch code of qornn/model specifies all
 * of it, and the results are the same bits.
 *
 * Arrays are dense, row-major and of float. The caller owns every array. */
#ifndef QORNN_WEIGHTS_H
#define QORNN_WEIGHTS_H

#include "recurrence.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int64_t d, n, n_skip; /* n_skip is 0 without a skip */
  int64_t bits;
  int64_t below, apart;   /* bits that a sum may have below `step`, and that the grids of C and S may lie apart */
  int64_t largest_bias;   /* in units of the sums */
  const float *C, *S, *c; /* (d, n), (d, n_skip), (d): what the optimizer holds */
  const float *source_step, *skip_step; /* (1): of x and of the skip */
  const float *step;                    /* (1): of the outputs; null: none yet */
} qornn_mix_weights;

/* C, S and c as the network uses them: one power-of-two unit per row, the bias on the grid of the sums. */
QORNN_API void qornn_quantize_mix(const qornn_mix_weights *weights, float *C, float *S, float *c);

typedef struct {
  int64_t p, n;
  int64_t bits, lambda_bits;
  int64_t finest;                      /* a unit of U is at least step / (source_step 2^finest) */
  const float *U;                      /* (2p, n): what the optimizer holds */
  const float *decay, *radius, *angle; /* (p) each: exp nu, exp(-exp nu) and exp phi */
  const float *cosine, *sine;          /* (p) each: of the angle */
  const float *source_step;            /* (1); null: of floats, and units are as fine as they like */
  const float *step;                   /* (p): of the states; null: 1 */
} qornn_turn_weights;

/* U in units of a state's step, one power-of-two unit per row, and lambda = a + ib on the grid of the unit disc. */
QORNN_API void qornn_quantize_turns(const qornn_turn_weights *weights, float *U, float *a, float *b);

/* Gradients of the stored U, nu and phi, of those of U, a and b: straight through every rounding. */
QORNN_API void qornn_turn_gradients(const qornn_turn_weights *weights, const float *dU, const float *da,
                                    const float *db, float *dU_raw, float *dnu, float *dphi);

/* V (n_o, n) with one power-of-two unit, and b (n_o) on the grid of V's sums, whose inputs have the step (1). */
QORNN_API void qornn_quantize_readout(int64_t n_o, int64_t n, int64_t bits, const float *V_raw, const float *b_raw,
                                      const float *step, float *V, float *b);

/* Steps (n) move by one power of two where peak leaves low..1 of their range; 1 where some did, else 0. Factors (n) are
 * the old steps over the new ones. */
QORNN_API int qornn_move_steps(int64_t n, int64_t top, double low, double smallest, double largest, const float *peak,
                               float *step, float *factors);

/* peak = max(seen, decay peak), not below `smallest`; where it was 0 so far, it is what was seen, and the step the
 * smallest power of two of smallest..largest with peak <= top step. With in_steps, seen is in units of the steps. (n)
 * each. */
QORNN_API void qornn_see_peak(int64_t n, int64_t top, double decay, double smallest, double largest, int in_steps,
                              const float *seen, float *step, float *peak);

/* y = step clamp(R(x gain), -top, top - 1), in double; NaN stays. (n) each. */
QORNN_API void qornn_round_inputs(int64_t n, double gain, double step, int64_t top, const float *x, float *y);

#ifdef __cplusplus
}
#endif
#endif
