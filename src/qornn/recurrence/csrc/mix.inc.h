// y = rounded_relu(C x + c [+ S skip]) of rows, and its gradients. Included by tile.inc.h.

typedef int8_t Bytes __attribute__((vector_size(LANES)));

constexpr int64_t kMixRows = 128;  // rows whose gradients stay in the cache while all products read them

// What rounded_relu gives for of_x + of_skip + c, added in double; of_x becomes that sum, to the nearest float.
template <bool Round>
inline Vector wide_sum(Vector &of_x, Vector of_skip, Vector c, const qornn_mix &p) {
  const Doubles zero{}, step = splat(p.step), inverse = splat(1 / p.step), top = splat(static_cast<double>(p.top)),
                        half = splat(0.5);
  Doubles sums[2], y[2];
  for (int i = 0; i < 2; ++i) {
    sums[i] = widened(of_x, i) + widened(of_skip, i) + widened(c, i);
    y[i] = at_least(sums[i], zero);
    if (Round) y[i] = step * trunc(at_most(y[i] * inverse, top) + half);
  }
  of_x = narrowed(sums[0], sums[1]);
  return narrowed(y[0], y[1]);
}

struct MixForward {
  const qornn_mix &p;
  Panel C, S;
  const float *c;  // padded
  float *y;
  int8_t *keep;
  float *most, *positive;  // padded: each unit's largest sum, passing over NaN, and its largest positive one with NaN

  template <bool Round, bool Wide>
  struct As {
    template <int R, int V>
    static void run(const MixForward &m, int64_t row, int64_t unit) {
      Vector sum[R][V], of_skip[Wide ? R : 1][V];
      each<R, V>([&](int r, int v) { sum[r][v] = Wide ? Vector{} : load(m.c + unit + v * LANES); });
      add_product(sum, m.p.x + row * m.p.n, m.p.n, 1, m.C.at + unit, m.C.ld, m.p.n);
      if constexpr (Wide) each<R, V>([&](int r, int v) { of_skip[r][v] = Vector{}; });
      auto &second = [&]() -> auto & {
        if constexpr (Wide)
          return of_skip;
        else
          return sum;
      }();
      if (m.p.n_skip)
        add_product(second, m.p.skip + row * m.p.n_skip, m.p.n_skip, 1, m.S.at + unit, m.S.ld, m.p.n_skip);
      const float step = static_cast<float>(m.p.step);
      const Vector zero{}, scale = splat(step), inverse = splat(1 / step), top = splat(static_cast<float>(m.p.top)),
                           half = splat(0.5f);
      each<1, V>([&](int, int v) {
        const int64_t at = unit + v * LANES, n = m.p.d - at;
        Vector largest = load(m.most + at);
        Mask bits = (Mask)load(m.positive + at);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          Vector acc = sum[r][v], y{};
          if constexpr (Wide) y = wide_sum<Round>(acc, of_skip[r][v], load(m.c + at), m.p);
          const Bytes kept = ~__builtin_convertvector((Mask)(acc <= zero), Bytes);  // NaN is kept, as in torch
          std::memcpy(m.keep + (row + r) * m.p.d + at, &kept, static_cast<size_t>(std::min<int64_t>(n, LANES)));
          largest = at_least(largest, acc);
          acc = at_least(acc, zero);
          bits = larger(bits, magnitude<float>(acc));
          if constexpr (!Wide) y = Round ? scale * trunc(at_most(acc * inverse, top) + half) : acc;
          store(m.y + (row + r) * m.p.d + at, y, n);
        }
        store(m.most + at, largest);
        store(m.positive + at, (Vector)bits);
      });
    }
  };
};

// Rows first..end-1.
void mix(const qornn_mix &p, const float *C, const float *S, const float *c, float *y, int8_t *keep, float *peaks,
         int64_t first, int64_t end) {
  const int64_t D = padded(p.d);
  std::fill_n(peaks, D, -std::numeric_limits<float>::infinity());
  std::fill_n(peaks + D, D, 0.0f);
  const MixForward m{p, {C, D}, {S, D}, c, y, keep, peaks, peaks + D};
  for_each_product(end - first, p.d, [&](int64_t row, int count, int64_t unit, int vectors) {
    const auto run = [&](auto as) {
      dispatch<decltype(as), const MixForward &, int64_t, int64_t>(count, vectors, m, first + row, unit);
    };
    if (p.wide)
      p.step != 0 ? run(MixForward::As<true, true>{}) : run(MixForward::As<false, true>{});
    else
      p.step != 0 ? run(MixForward::As<true, false>{}) : run(MixForward::As<false, false>{});
  });
}

int64_t mix_scratch(const qornn_mix &p) { return kMixRows * (padded(p.d) + padded(p.n) + padded(p.n_skip)); }

// dy where the sum was kept, as rows of whole vectors, and its sums.
inline void masked_rows(const qornn_mix &p, const qornn_mix_gradients &grads, int64_t row, int64_t count, float *g,
                        float *dc) {
  const int64_t D = padded(p.d);
  for (int64_t unit = 0; unit < D; unit += LANES) {
    const int64_t n = p.d - unit;
    Vector sum = load(dc + unit);
    const float *dy = grads.dy + row / grads.alike * p.d + unit;
    for (int64_t i = 0, left = grads.alike - row % grads.alike; i < count; ++i) {
      Bytes kept{};
      std::memcpy(&kept, grads.keep + (row + i) * p.d + unit, static_cast<size_t>(std::min<int64_t>(n, LANES)));
      const Vector v = (Vector)((Mask)load(dy, n) & __builtin_convertvector(kept, Mask));
      store(g + i * D + unit, v);
      sum += v;
      if (--left) continue;
      left = grads.alike;
      dy += p.d;
    }
    store(dc + unit, sum);
  }
}

// Adds the gradients of rows first..end-1 to sums: dc (padded d), dC (d, padded n), dS (d, padded n_skip).
void mix_backward(const qornn_mix &p, const qornn_mix_gradients &grads, const float *C, const float *S, float *sums,
                  float *scratch, int64_t first, int64_t end) {
  const int64_t D = padded(p.d), N = padded(p.n), M = padded(p.n_skip);
  float *dC = sums + D, *dS = dC + p.d * N, *g = scratch, *x = g + kMixRows * D, *skip = x + kMixRows * N;
  for (int64_t row = first; row < end; row += kMixRows) {
    const int64_t count = std::min(kMixRows, end - row);
    masked_rows(p, grads, row, count, g, sums);
    const float *rows = whole_vectors(p.x + row * p.n, count, p.n, x);
    add_outer({g, D, rows, N, count, dC, N}, p.d, p.n);
    if (grads.dx) multiply({g, D, p.d, {C, N}, grads.dx + row * p.n, p.n}, count);
    if (!p.n_skip) continue;
    rows = whole_vectors(p.skip + row * p.n_skip, count, p.n_skip, skip);
    add_outer({g, D, rows, M, count, dS, M}, p.d, p.n_skip);
    if (grads.dskip) multiply({g, D, p.d, {S, M}, grads.dskip + row * p.n_skip, p.n_skip}, count);
  }
}
