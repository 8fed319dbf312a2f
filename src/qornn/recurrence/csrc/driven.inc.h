// The scan of rotations whose drive is U x: some steps of the drive at a time, which stay in the cache. Included by
// tile.inc.h.

constexpr int64_t kTileFloats = 8192;

inline int64_t tile_steps(const qornn_rotations &p) {
  return std::min(p.T, std::max<int64_t>(8, std::min<int64_t>(64, kTileFloats / (ROTATED * 2 * p.p))));
}

// Of the drive or its gradient, and of the steps of one sequence's x in whole vectors.
int64_t driven_scratch(const qornn_rotations &p, int64_t n) { return tile_steps(p) * (ROTATED * 2 * p.p + padded(n)); }

inline int64_t steps_within(const Rotated<float> &s, int64_t r, int64_t from, int64_t to) {
  return std::max<int64_t>(0, std::min(to, s.length(r)) - from);
}

// Blocks first..end-1 of sequences; U is Uᵀ (n, padded 2p).
void driven_scan(const qornn_rotations &p, const qornn_driven &d, const void *lambda, void *state, const float *U,
                 float *last, float *peak, float *scratch, int64_t first, int64_t end) {
  const int64_t tile = tile_steps(p), row = tile * 2 * p.p;
  float *states = static_cast<float *>(p.states);
  for (int64_t block = first; block < end; ++block) {
    const Rotated<float> s = block_of<float>(p, lambda, state, block);
    load_rows(s, p.z0);
    for (int64_t from = 0; from < p.T; from += tile) {
      const int64_t to = std::min(p.T, from + tile);
      for (int64_t r = 0; r < s.rows(); ++r) {
        const float *x = d.x + ((s.row + r) * p.T + from) * d.n;
        multiply({x, d.n, d.n, {U, padded(2 * p.p)}, scratch + r * row, 2 * p.p}, steps_within(s, r, from, to));
      }
      const Strides drive{row, from};
      if (p.top)
        walk_block(ScanForward<float, true>{s, scratch, drive, states, peak}, from, to);
      else
        walk_block(ScanForward<float, false>{s, scratch, drive, states, peak}, from, to);
    }
    store_rows(s, last);
    fill_past_the_end(s, states);
  }
}

// Adds to sums: da and db (P each), dU (2p, padded n). U is (2p, padded n).
void driven_scan_backward(const qornn_rotations &p, const qornn_rotations_gradients &g, const qornn_driven &d,
                          const void *lambda, void *state, const float *U, float *sums, float *scratch, int64_t first,
                          int64_t end) {
  const int64_t tile = tile_steps(p), row = tile * 2 * p.p, N = padded(d.n);
  const float *given = static_cast<const float *>(g.states), *states = static_cast<const float *>(p.states);
  float *copy = scratch + ROTATED * row;
  for (int64_t block = first; block < end; ++block) {
    const Rotated<float> s = block_of<float>(p, lambda, state, block);
    float *da = sums, *db = da + s.P, *dU = db + s.P;
    load_rows(s, g.last);
    for (int64_t from = (p.T - 1) / tile * tile; from >= 0; from -= tile) {
      const int64_t to = std::min(p.T, from + tile);
      const Strides drive{row, from};
      if (given)
        walk_block(ScanBackward<float, true>{s, given, states, scratch, drive, da, db}, from, to);
      else
        walk_block(ScanBackward<float, false>{s, given, states, scratch, drive, da, db}, from, to);
      for (int64_t r = 0; r < s.rows(); ++r) {
        const int64_t steps = steps_within(s, r, from, to), at = ((s.row + r) * p.T + from) * d.n;
        const float *G = scratch + r * row;
        add_outer({G, 2 * p.p, whole_vectors(d.x + at, steps, d.n, copy), N, steps, dU, N}, 2 * p.p, d.n);
        if (!d.dx) continue;
        multiply({G, 2 * p.p, 2 * p.p, {U, N}, d.dx + at, d.n}, steps);
        std::fill_n(d.dx + at + steps * d.n, (to - from - steps) * d.n, 0.0f);
      }
    }
    store_rows(s, g.z0);
  }
}
