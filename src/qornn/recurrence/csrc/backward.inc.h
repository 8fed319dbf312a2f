// The way back: gradients of the states, and of every weight. Included by tile.inc.h.
//
// A chunk of time steps is walked back, its gradients kept in cache; then the chunk's part of Σ dz_t h_{t−1}ᵀ is added
// to dW while they are still there. The (T, B, n_h) tensor of gradients is never made.

constexpr int64_t kChunkFloats = 128 * 1024;  // of dz: it fits the cache with two copies in the tiles' order
constexpr int64_t kChunkRows = 512;           // at least, or dW itself is moved too often

struct Chunk {
  int64_t rows, ld, steps;   // sequences of this thread; floats in a row of dz; time steps
  float *dz, *carry, *dy;    // (steps, rows, ld), (rows, ld), (steps·rows, n_o)
  float *states, *x, *left;  // in the tiles' order: h and x as panels, dz or dy as blocks
};

inline int64_t chunk_steps(const qornn_problem &p, int64_t rows) {
  const int64_t fitting = kChunkFloats / (rows * spread(p.n_h)), enough = (kChunkRows + rows - 1) / rows;
  return std::min<int64_t>(p.T, std::max(fitting, enough));
}

int64_t scratch_floats(const qornn_problem &p, int64_t rows) {
  const int64_t K = chunk_steps(p, rows) * rows;
  return (K + rows) * spread(p.n_h) + K * p.n_o + (K + rows) * padded(p.n_h) + K * padded(p.n_i) +
         K * std::max(p.n_h, p.n_o) + 64;
}

inline Chunk make_chunk(const qornn_problem &p, int64_t rows, float *scratch) {
  const int64_t ld = spread(p.n_h), steps = chunk_steps(p, rows), K = steps * rows;
  float *carry = scratch + K * ld, *states = carry + rows * ld, *x = states + (K + rows) * padded(p.n_h);
  float *dy = x + K * padded(p.n_i);
  return Chunk{rows, ld, steps, scratch, carry, dy, states, x, dy + K * p.n_o};
}

struct Backward {
  const qornn_problem &p;
  const qornn_gradients &g;
  const Packed &w;
  const Sums &sums;
  const Chunk &c;
  int64_t first, t;
  const float *after;  // (rows, ld): dz_{t+1}, null at the last step
  float *now;          // (rows, ld): dz_t; Wᵀ dz_{t+1} before, where W is diag(u) S/√n_h
  const float *dy;     // (rows, n_o) of this step
};

template <int A>
struct GradientTile {
  template <int R, int V>
  static void run(const Backward &s, int64_t row, int64_t unit) {
    const qornn_problem &p = s.p;
    const qornn_gradients &g = s.g;
    Vector sum[R][V] = {};
    prefetch<R, V, 0>(p.h + (s.t * p.B + s.first + row) * p.n_h + unit, p.n_h);
    const int64_t i = s.first + row, left = p.n_h - unit - (V - 1) * LANES;
    const float *states = p.h + (s.t * p.B + i) * p.n_h + unit;
    float *now = s.now + row * s.c.ld + unit;
    if (g.dy) accumulate(sum, s.dy + row * p.n_o, p.n_o, 1, s.w.V + p.n_o * unit, p.n_o);
    if (g.dy && p.readout_relu)
      each<R, V>([&](int r, int v) {
        const Vector h = load(states + r * p.n_h + v * LANES, v < V - 1 ? LANES : left);
        sum[r][v] = select(h <= Vector{}, Vector{}, sum[r][v]);
      });
    if (s.after && p.u)
      each<R, V>([&](int r, int v) { sum[r][v] += load(now + r * s.c.ld + v * LANES, v < V - 1 ? LANES : left); });
    else if (s.after)
      accumulate(sum, s.after + row * s.c.ld, s.c.ld, 1, s.w.W + p.n_h * unit, p.n_h);
    if (g.states)
      each<R, V>([&](int r, int v) {
        const float *from = g.states + (i + r) * g.states_b + s.t * g.states_t + unit;
        sum[r][v] += load(from + v * LANES, v < V - 1 ? LANES : left);
      });
    if (g.last && (p.lengths || s.t + 1 == p.T))
      each<R, V>([&](int r, int v) {
        if (s.t + 1 == (p.lengths ? p.lengths[i + r] : p.T))
          sum[r][v] += load(g.last + (i + r) * p.n_h + unit + v * LANES, v < V - 1 ? LANES : left);
      });
    each<R, V>([&](int r, int v) {
      const Vector h = load(states + r * p.n_h + v * LANES, v < V - 1 ? LANES : left);
      sum[r][v] = times_derivative<A>(sum[r][v], h);
      store(now + r * s.c.ld + v * LANES, sum[r][v]);
    });
    if (p.lengths)
      each<R, V>([&](int r, int v) {
        if (past(p, s.t, i + r)) store(now + r * s.c.ld + v * LANES, sum[r][v] = Vector{});
      });
    if (g.db)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        float *to = s.sums.db + unit + v * LANES;
        Vector total = load(to);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const Vector h = load(states + r * p.n_h + v * LANES, v < V - 1 ? LANES : left);
          total += A == QORNN_MODRELU ? sum[r][v] * sign(h) : sum[r][v];
        }
        store(to, total);
      }
    if (g.dz)
      each<R, V>([&](int r, int v) {
        store(g.dz + (s.t * p.B + i + r) * p.n_h + unit + v * LANES, sum[r][v], v < V - 1 ? LANES : left);
      });
    if (p.codes)
      each<R, V>([&](int r, int v) {
        const int64_t code = past(p, s.t, i + r) ? 0 : p.codes[(i + r) * p.T + s.t];
        float *to = s.sums.dU + code * padded(p.n_h) + unit + v * LANES;
        store(to, load(to) + sum[r][v]);
      });
    if (p.codes || p.n_i > kFewChannels) return;
    for (int64_t c = 0; c < p.n_i; ++c) {
      Vector x[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) x[r] = splat(past(p, s.t, i + r) ? 0.0f : p.x[((i + r) * p.T + s.t) * p.n_i + c]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        float *to = s.sums.dU + c * padded(p.n_h) + unit + v * LANES;
        Vector total = load(to);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) total += sum[r][v] * x[r];
        store(to, total);
      }
    }
  }
};

// out (R, V·LANES) += Σ_k block[k][r] panel[k]: a piece of the gradient of a weight matrix.
struct WeightTile {
  template <int R, int V>
  static void run(float *out, int64_t ld_out, const float *block, const float *panel, int64_t K) {
    Vector sum[R][V] = {};
    accumulate(sum, block, 1, R, panel, K);
    each<R, V>([&](int r, int v) {
      float *to = out + r * ld_out + v * LANES;
      store(to, load(to) + sum[r][v]);
    });
  }
};

// The columns of a (K, columns) in blocks of at most ROWS, each block's rows one behind the other.
void pack_left(float *out, const float *a, int64_t ld, int64_t columns, int64_t K) {
  for_each_block(0, columns, [&](int64_t column, int width) {
    float *to = out + K * column;
    for (int64_t k = 0; k < K; ++k, to += width)
      if (width == ROWS)
        std::memcpy(to, a + k * ld + column, ROWS * 4);
      else
        std::copy_n(a + k * ld + column, width, to);
  });
}

// out (rows, columns) += leftᵀ · panels; the panels are of a matrix of `tall` rows, used from row `skip` on.
void add_product(float *out, const float *left, int64_t rows, const float *panels, int64_t columns, int64_t tall,
                 int64_t skip, int64_t K) {
  for_each_panel(columns, [&](int64_t column, int vectors) {
    const float *panel = panels + tall * column + skip * vectors * LANES;
    for_each_block(0, rows, [&](int64_t row, int height) {
      dispatch<WeightTile, float *, int64_t, const float *, const float *, int64_t>(
          height, vectors, out + row * padded(columns) + column, padded(columns), left + K * row, panel, K);
    });
  });
}

// h of steps from−1 … to−1, as panels of (to − from + 1)·rows rows.
void pack_states(const qornn_problem &p, const Chunk &c, int64_t first, int64_t from, int64_t to) {
  const int64_t tall = (to - from + 1) * c.rows;
  for_each_panel(p.n_h, [&](int64_t unit, int vectors) {
    float *out = c.states + tall * unit;
    const int64_t width = vectors * LANES, there = std::min(width, p.n_h - unit);
    for (int64_t t = from - 1; t < to; ++t) {
      const float *in = (t < 0 ? p.h0 : p.h + t * p.B * p.n_h) + first * p.n_h + unit;
      for (int64_t r = 0; r < c.rows; ++r, out += width, in += p.n_h)
        for (int v = 0; v < vectors; ++v) store(out + v * LANES, load(in + v * LANES, there - v * LANES));
    }
  });
}

// x of steps from … to−1 as panels; nothing past a sequence's end, where anything may stand.
void pack_inputs(const qornn_problem &p, const Chunk &c, int64_t first, int64_t from, int64_t to) {
  const int64_t tall = (to - from) * c.rows;
  for_each_panel(p.n_i, [&](int64_t unit, int vectors) {
    float *out = c.x + tall * unit;
    const int64_t width = vectors * LANES, there = std::min(width, p.n_i - unit);
    for (int64_t t = from; t < to; ++t)
      for (int64_t r = 0; r < c.rows; ++r, out += width) {
        const int64_t i = first + r, kept = past(p, t, i) ? 0 : there;
        std::copy_n(p.x + (i * p.T + t) * p.n_i + unit, kept, out);
        std::fill(out + kept, out + width, 0.0f);
      }
  });
}

// du += Σ dz_t ⊙ S h_{t−1}/√n_h over a chunk.
void add_sign_gradient(const qornn_problem &p, const Chunk &c, int64_t first, int64_t from, int64_t to, float *du) {
  const int64_t ld = padded(p.n_h);
  const Vector scale = splat(1.0f / std::sqrt(static_cast<float>(p.n_h)));
  for (int64_t t = from; t < to; ++t) {
    const float *before = (t ? p.h + (t - 1) * p.B * p.n_h : p.h0) + first * p.n_h;
    for_each_block(0, c.rows, [&](int64_t row, int rows) {
      const float *dz = c.dz + ((t - from) * c.rows + row) * c.ld;
      for (int r = 0; r < rows; ++r) transform(c.states + r * ld, before + (row + r) * p.n_h, p.n_h, nullptr);
      for (int64_t unit = 0; unit < p.n_h; unit += LANES) {
        Vector total{};
        for (int r = 0; r < rows; ++r)
          total += load(dz + r * c.ld + unit) * load(c.states + r * ld + unit, p.n_h - unit);
        store(du + unit, load(du + unit) + total * scale);
      }
    });
  }
}

template <int A>
void walk_back(const qornn_problem &p, const qornn_gradients &g, const Packed &w, const Sums &sums, const Chunk &c,
               int64_t first, int64_t from, int64_t to) {
  for (int64_t t = to - 1; t >= from; --t) {
    float *now = c.dz + (t - from) * c.rows * c.ld, *dy = c.dy + (t - from) * c.rows * p.n_o;
    if (g.dy)
      for (int64_t r = 0; r < c.rows; ++r) std::copy_n(g.dy + (first + r) * g.dy_b + t * g.dy_t, p.n_o, dy + r * p.n_o);
    const float *after = t + 1 == p.T ? nullptr : t + 1 == to ? c.carry : now + c.rows * c.ld;
    const Backward s{p, g, w, sums, c, first, t, after, now, dy};
    const auto start = [&](int64_t row, int rows) {
      if (!after || all_past(p, t, first + row, rows)) return;
      for (int64_t r = row; r < row + rows; ++r) transform(now + r * c.ld, after + r * c.ld, p.n_h, w.u);
    };
    for_each_tile(p, 0, c.rows, start, [&](int64_t row, int rows, int64_t unit, int vectors) {
      if (!all_past(p, t, first + row, rows))
        return dispatch<GradientTile<A>, const Backward &>(rows, vectors, s, row, unit);
      for (int r = 0; r < rows; ++r) {
        std::fill_n(now + (row + r) * c.ld + unit, vectors * LANES, 0.0f);
        if (g.dz)
          std::fill_n(g.dz + (t * p.B + first + row + r) * p.n_h + unit,
                      std::min<int64_t>(vectors * LANES, p.n_h - unit), 0.0f);
      }
    });
  }
}

template <int A>
void backward_as(const qornn_problem &p, const qornn_gradients &g, const Packed &w, const Sums &sums, int64_t first,
                 int64_t last) {
  const Chunk c = make_chunk(p, last - first, sums.scratch);
  for (int64_t to = p.T; to > 0; to -= std::min(to, c.steps)) {
    const int64_t from = std::max<int64_t>(0, to - c.steps), K = (to - from) * c.rows;
    const bool dense_dW = sums.dW && !p.u;
    walk_back<A>(p, g, w, sums, c, first, from, to);
    if (sums.dW && p.u) add_sign_gradient(p, c, first, from, to, sums.dW);
    if (dense_dW || g.dy) pack_states(p, c, first, from, to);
    if (dense_dW || sums.dU_wide) pack_left(c.left, c.dz, c.ld, p.n_h, K);
    if (dense_dW) add_product(sums.dW, c.left, p.n_h, c.states, p.n_h, K + c.rows, 0, K);
    if (sums.dU_wide) {
      pack_inputs(p, c, first, from, to);
      add_product(sums.dU_wide, c.left, p.n_h, c.x, p.n_i, K, 0, K);
    }
    if (g.dy) {
      if (p.readout_relu)
        for (int64_t at = 0; at < (K + c.rows) * padded(p.n_h); at += LANES)
          store(c.states + at, relu(load(c.states + at)));
      pack_left(c.left, c.dy, p.n_o, p.n_o, K);
      add_product(sums.dV, c.left, p.n_o, c.states, p.n_h, K + c.rows, c.rows, K);
    }
    std::memcpy(c.carry, c.dz, static_cast<size_t>(c.rows * c.ld) * 4);
  }
  for (int64_t r = 0; r < c.rows; ++r) std::copy_n(c.carry + r * c.ld, p.n_h, g.dz0 + (first + r) * p.n_h);
}
