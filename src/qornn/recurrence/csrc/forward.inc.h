// The way forward: h_t and y_t, step by step. Included by tile.inc.h.

struct Forward {
  const qornn_problem &p;
  const Packed &w;
  int64_t t;
  const float *before;  // (B, n_h): h_{t−1}
  float *now;           // (B, n_h): h_t; S h_{t−1} before, where W is diag(u) S/√n_h
};

template <int A>
struct StateTile {
  template <int R, int V>
  static void run(const Forward &s, int64_t row, int64_t unit) {
    const qornn_problem &p = s.p;
    const float *U = s.w.U + p.n_i * unit;
    Vector sum[R][V] = {};
    prefetch<R, V, 1>(s.now + row * p.n_h + unit, p.n_h);
    if (p.codes) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const int64_t code = past(p, s.t, row + r) ? 0 : p.codes[(row + r) * p.T + s.t];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sum[r][v] = load(U + (code * V + v) * LANES);
      }
    } else {
      accumulate(sum, p.x + (row * p.T + s.t) * p.n_i, p.T * p.n_i, 1, U, p.n_i);
    }
    float *now = s.now + row * p.n_h + unit;
    const int64_t left = p.n_h - unit - (V - 1) * LANES;  // units in the last vector; the others are full
    if (s.w.u)
      each<R, V>([&](int r, int v) {
        sum[r][v] += load(s.w.u + unit + v * LANES) * load(now + r * p.n_h + v * LANES, v < V - 1 ? LANES : left);
      });
    else
      accumulate(sum, s.before + row * p.n_h, p.n_h, 1, s.w.W + p.n_h * unit, p.n_h);
    each<R, V>([&](int r, int v) {
      const Vector h = activate<A>(sum[r][v], load(s.w.b + unit + v * LANES));
      store(now + r * p.n_h + v * LANES, h, v < V - 1 ? LANES : left);
    });
    if (!p.lengths) return;
    for (int r = 0; r < R; ++r)
      if (past(p, s.t, row + r)) std::fill_n(now + r * p.n_h, std::min<int64_t>(V * LANES, p.n_h - unit), 0.0f);
  }
};

template <bool Relu>
struct OutputTile {
  template <int R, int V>
  static void run(const Forward &s, int64_t row, int64_t out) {
    const qornn_problem &p = s.p;
    const int64_t left = p.n_o - out - (V - 1) * LANES;
    Vector sum[R][V];
    each<R, V>([&](int r, int v) { sum[r][v] = load(p.b_o + out + v * LANES, v < V - 1 ? LANES : left); });
    accumulate<Relu>(sum, s.now + row * p.n_h, p.n_h, 1, s.w.V + p.n_h * out, p.n_h);
    float *y = p.y + (s.t * p.B + row) * p.n_o + out;
    each<R, V>([&](int r, int v) { store(y + r * p.n_o + v * LANES, sum[r][v], v < V - 1 ? LANES : left); });
  }
};

template <int A>
void forward_as(const qornn_problem &p, const Packed &w, int64_t first, int64_t last) {
  for (int64_t t = 0; t < p.T; ++t) {
    const Forward s{p, w, t, t ? p.h + (t - 1) * p.B * p.n_h : p.h0, p.h + t * p.B * p.n_h};
    const auto start = [&](int64_t row, int rows) {
      if (all_past(p, t, row, rows)) return;
      for (int64_t r = row; r < row + rows; ++r) transform(s.now + r * p.n_h, s.before + r * p.n_h, p.n_h, nullptr);
    };
    for_each_tile(p, first, last, start, [&](int64_t row, int rows, int64_t unit, int vectors) {
      if (!all_past(p, t, row, rows)) return dispatch<StateTile<A>, const Forward &>(rows, vectors, s, row, unit);
      const int64_t width = std::min<int64_t>(vectors * LANES, p.n_h - unit);
      for (int r = 0; r < rows; ++r) std::fill_n(s.now + (row + r) * p.n_h + unit, width, 0.0f);
    });
    if (p.y)
      for_each_panel(p.n_o, [&](int64_t out, int vectors) {
        for_each_block(first, last, [&](int64_t row, int rows) {
          if (p.readout_relu) return dispatch<OutputTile<true>, const Forward &>(rows, vectors, s, row, out);
          dispatch<OutputTile<false>, const Forward &>(rows, vectors, s, row, out);
        });
      });
  }
}
