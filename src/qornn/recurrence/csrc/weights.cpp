// Compiled without contraction: every operation rounds as torch's does, so that the results are its bits.

#include "weights.h"

#include <cmath>

#include "larger.h"

namespace {

using qornn::larger;

// The nearest whole number of low..high, both whole themselves; ties away from zero, NaN stays. By way of int32, as
// vectors of every machine convert. The number just below 1/2 is what rounds 0.49999997 down and 1/2 up.
template <typename Number>
Number rounded(Number v, Number low, Number high) {
  const Number half = sizeof(Number) == 8 ? Number(0x1.fffffffffffffp-2) : Number(0x1.fffffep-2f);
  const Number above = v > low ? v : low, within = above < high ? above : high;
  const Number whole = static_cast<Number>(static_cast<int32_t>(within + std::copysign(half, within)));
  return v == v ? whole : v;
}

float power_of_two(int64_t exponent) { return static_cast<float>(std::ldexp(1.0, static_cast<int>(exponent))); }

// The power of two nearest to max|W|/(2^(bits-1) - 1/2) in ratio; 0 where all are zero, or some NaN.
float unit_of(const float *W, int64_t n, int64_t bits) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = larger(largest, std::fabs(W[i]));
  if (!(largest > 0)) return 0;
  int exponent;
  const float ratio = largest / (power_of_two(bits - 1) - 0.5f), mantissa = std::frexp(ratio, &exponent);
  const float power = ratio / mantissa;
  return mantissa < static_cast<float>(0.70710678118654752) ? power / 2 : power;
}

// The smallest power of two that is not below the ratio, within those bounds.
float smallest_step(float ratio, float least, float most) {
  int exponent;
  const float within = ratio < least ? least : ratio > most ? most : ratio, mantissa = std::frexp(within, &exponent);
  const float power = within / mantissa;
  return mantissa > 0.5f ? power : power / 2;
}

// The nearest points of the grid of that unit, over a power of two; NaN stays, and a unit of 0 gives zeros.
void on_grid(const float *W, int64_t n, float unit, int64_t bits, float over, float *out) {
  const float top = power_of_two(bits - 1), low = -top, high = top - 1;
  for (int64_t i = 0; i < n; ++i) {
    const float units = unit > 0 ? W[i] / unit : 0;
    out[i] = rounded(units, low, high) * unit / over;
  }
}

// â + ib̂: the nearest, stepped towards zero while it lies outside the disc.
void on_disc(float *a, float *b, int64_t bits) {
  const float top = power_of_two(bits - 1);
  float re = rounded(*a * top, 1 - top, top), im = rounded(*b * top, -top, top - 1);
  for (int i = 0; i < 3 && re * re + im * im > top * top; ++i) {
    float &longer = std::fabs(re) >= std::fabs(im) ? re : im;
    longer -= longer > 0 ? 1.0f : -1.0f;
  }
  *a = re / top;
  *b = im / top;
}

}  // namespace

extern "C" void qornn_quantize_mix(const qornn_mix_weights *w, float *C, float *S, float *c) {
  const float source = *w->source_step, skip = *w->skip_step, below = power_of_two(-w->below);
  const float bias = static_cast<float>(w->largest_bias), apart = power_of_two(-w->apart);
  for (int64_t i = 0; i < w->d; ++i) {
    const float *row = w->C + i * w->n, *row_S = w->S + i * w->n_skip;
    float unit = unit_of(row, w->n, w->bits), unit_S = unit_of(row_S, w->n_skip, w->bits), sum = unit * source;
    if (w->n_skip) sum = larger(sum, unit_S * skip);
    float least = larger(w->step ? *w->step * below : 0, sum * apart);
    if (!(least > 0)) least = source;  // a row of zeros, and nothing to compare with
    unit = larger(unit, least / source);
    float grid = unit * source;
    if (w->n_skip) {
      unit_S = larger(unit_S, least / skip);
      grid = -larger(-grid, -(unit_S * skip));
      on_grid(row_S, w->n_skip, unit_S, w->bits, 1, S + i * w->n_skip);
    }
    on_grid(row, w->n, unit, w->bits, 1, C + i * w->n);
    c[i] = rounded(w->c[i] / grid, -bias, bias) * grid;
  }
}

extern "C" void qornn_quantize_turns(const qornn_turn_weights *w, float *U, float *a, float *b) {
  for (int64_t i = 0; i < 2 * w->p; ++i) {
    const float *row = w->U + i * w->n, step = w->step ? w->step[i % w->p] : 1;
    float unit = unit_of(row, w->n, w->bits);
    if (!(unit > 0)) unit = 1;
    if (w->step && w->source_step) unit = larger(unit, step / (*w->source_step * power_of_two(w->finest)));
    on_grid(row, w->n, unit, w->bits, step, U + i * w->n);
  }
  for (int64_t j = 0; j < w->p; ++j) {
    a[j] = w->radius[j] * w->cosine[j];
    b[j] = w->radius[j] * w->sine[j];
    on_disc(a + j, b + j, w->lambda_bits);
  }
}

extern "C" void qornn_turn_gradients(const qornn_turn_weights *w, const float *dU, const float *da, const float *db,
                                     float *dU_raw, float *dnu, float *dphi) {
  for (int64_t i = 0; i < 2 * w->p; ++i) {
    const float step = w->step ? w->step[i % w->p] : 1;
    for (int64_t j = i * w->n; j < (i + 1) * w->n; ++j) dU_raw[j] = dU[j] / step;
  }
  for (int64_t j = 0; j < w->p; ++j) {
    const float r = w->radius[j], cosine = w->cosine[j], sine = w->sine[j];
    dnu[j] = -((da[j] * cosine + db[j] * sine) * r) * w->decay[j];
    dphi[j] = (db[j] * r * cosine - da[j] * r * sine) * w->angle[j];
  }
}

extern "C" void qornn_quantize_readout(int64_t n_o, int64_t n, int64_t bits, const float *V_raw, const float *b_raw,
                                       const float *step, float *V, float *b) {
  const float unit = unit_of(V_raw, n_o * n, bits), sum = *step * unit;
  on_grid(V_raw, n_o * n, unit, bits, 1, V);
  for (int64_t i = 0; i < n_o; ++i) {
    const float units = sum > 0 ? b_raw[i] / sum : 0;
    b[i] = std::round(units) * sum;  // no bound: whatever the optimizer holds
  }
}

extern "C" int qornn_move_steps(int64_t n, int64_t top, double low, double smallest, double largest, const float *peak,
                                float *step, float *factors) {
  int moved = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float reach = static_cast<float>(top) * step[i];
    const bool up = peak[i] > reach && step[i] < static_cast<float>(largest);
    const bool down =
        peak[i] > 0 && peak[i] < static_cast<float>(low) * reach && step[i] > static_cast<float>(smallest);
    factors[i] = up ? 0.5f : down ? 2.0f : 1.0f;
    step[i] /= factors[i];
    moved |= up || down;
  }
  return moved;
}

extern "C" void qornn_see_peak(int64_t n, int64_t top, double decay, double smallest, double largest, int in_steps,
                               const float *seen, float *step, float *peak) {
  const float least = static_cast<float>(smallest), most = static_cast<float>(largest);
  for (int64_t i = 0; i < n; ++i) {
    const float now = in_steps ? seen[i] * step[i] : seen[i];
    if (peak[i] == 0) {  // so far: no factor, however large, is of use to who reads zeros
      if (now > 0) step[i] = smallest_step(now / static_cast<float>(top), least, most);
      peak[i] = now;
    } else {
      const float kept = larger(now, static_cast<float>(decay) * peak[i]);
      peak[i] = kept < least ? least : kept;
    }
  }
}

extern "C" void qornn_round_inputs(int64_t n, double gain, double step, int64_t top, const float *x, float *y) {
  const double low = -static_cast<double>(top), high = static_cast<double>(top - 1);
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>(rounded(static_cast<double>(x[i]) * gain, low, high) * step);
}
