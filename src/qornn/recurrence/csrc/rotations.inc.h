// The scan of rotations and the rounded ReLU, on floats or doubles. Included by tile.inc.h.
//
// A scan moves memory and computes little: each step of a sequence is read and written once, and what the next step needs
// stays in registers. A narrow sequence alone would wait for its own last step, so a few of them go together; a wide one
// keeps the registers busy by itself, and alone it is read in the order of memory.

constexpr int ROTATED = 4;                 // sequences in a block; sums over a block do not depend on the threads
constexpr int64_t kScanChunk = 64 * 1024;  // bytes read and written before the next vectors of the same steps

// One block of sequences.
template <typename Number_>
struct Rotated {
  typedef Number_ Number;
  const qornn_rotations &p;
  const Number *a, *b;  // (P): padded with zeros, so that the rest of the last vector stays zero
  int64_t P;            // p, padded to whole vectors
  Number *state;        // (ROTATED, 2P): z, or conj(λ) G on the way back
  int64_t row;          // the block's first sequence

  int64_t rows() const { return std::min<int64_t>(ROTATED, p.B - row); }
  int64_t length(int64_t r) const { return p.lengths ? p.lengths[row + r] : p.T; }
  int64_t at(int64_t r, int64_t t) const { return ((row + r) * p.T + t) * 2 * p.p; }  // in (B, T, 2p)
};

// Registers of a tile: V vectors of pairs of R sequences, from the block's r0-th sequence and from pair `unit` on.
template <typename Number, int R, int V>
struct Pairs {
  static constexpr int64_t L = kLanes<Number>;
  Numbers<Number> a[V], b[V], re[R][V], im[R][V];

  inline __attribute__((always_inline)) Pairs(const Rotated<Number> &s, int64_t r0, int64_t unit) {
    each<1, V>([&](int, int v) { a[v] = load(s.a + unit + v * L), b[v] = load(s.b + unit + v * L); });
    each<R, V>([&](int r, int v) {
      const Number *from = s.state + (r0 + r) * 2 * s.P + unit + v * L;
      re[r][v] = load(from), im[r][v] = load(from + s.P);
    });
  }

  inline __attribute__((always_inline)) void keep(const Rotated<Number> &s, int64_t r0, int64_t unit) const {
    each<R, V>([&](int r, int v) {
      Number *to = s.state + (r0 + r) * 2 * s.P + unit + v * L;
      store(to, re[r][v]), store(to + s.P, im[r][v]);
    });
  }
};

// Where a drive or its gradient lies: (ROTATED, steps, 2p), from step `first` on.
struct Strides {
  int64_t row, first;
};

template <typename Number_, bool Round>
struct ScanForward {
  static constexpr bool kBackwards = false;
  static constexpr int kWidest = 8;  // vectors of one sequence in a tile
  typedef Number_ Number;
  const Rotated<Number> &s;
  const Number *drive;  // of the block
  Strides lies;
  Number *states, *peak;  // peak: (P)

  // Steps from..to-1.
  template <int R, int V>
  void run(int64_t r0, int64_t unit, int64_t from, int64_t to) const {
    constexpr int64_t L = kLanes<Number>;
    const int64_t p = s.p.p, left = p - unit - (V - 1) * L;  // numbers in the last vector; the others are full
    const Numbers<Number> top = splat(static_cast<Number>(s.p.top)), scale = splat(static_cast<Number>(s.p.scale));
    Pairs<Number, R, V> z(s, r0, unit);
    Bits<Number> most[V];
    each<1, V>([&](int, int v) { most[v] = (Bits<Number>)load(peak + unit + v * L); });
    const Number *in = drive + r0 * lies.row + (from - lies.first) * 2 * p + unit;
    Number *out = states + s.at(r0, from) + unit;
    for (int64_t t = from; t < to; ++t, in += 2 * p, out += 2 * p)
      each<R, V>([&](int r, int v) {
        const int64_t here = r * s.p.T * 2 * p + v * L, there = r * lies.row + v * L, n = v < V - 1 ? L : left;
        Numbers<Number> &re = z.re[r][v], &im = z.im[r][v];
        Numbers<Number> x = load(in + there, n) + z.a[v] * re - z.b[v] * im;
        Numbers<Number> y = load(in + there + p, n) + z.a[v] * im + z.b[v] * re;
        most[v] = larger(most[v], larger(magnitude<Number>(x), magnitude<Number>(y)));
        re = Round ? rounded<Number>(x, top) : x;
        im = Round ? rounded<Number>(y, top) : y;
        store(out + here, re * scale, n);
        store(out + here + p, im * scale, n);
      });
    each<1, V>([&](int, int v) { store(peak + unit + v * L, (Numbers<Number>)most[v]); });
    z.keep(s, r0, unit);
  }
};

template <typename Number_, bool Given>
struct ScanBackward {
  static constexpr bool kBackwards = true;
  static constexpr int kWidest = 4;
  typedef Number_ Number;
  const Rotated<Number> &s;
  const Number *given, *states;  // given: gradient of the states
  Number *drive;                 // of the block
  Strides lies;
  Number *da, *db;  // (P)

  // Steps to-1..from. The state is conj(λ) G_{t+1}; it starts as the gradient of the last state. da and db are sums over
  // scaled states, so they come out times the scale.
  template <int R, int V>
  void run(int64_t r0, int64_t unit, int64_t from, int64_t to) const {
    constexpr int64_t L = kLanes<Number>;
    const int64_t p = s.p.p, left = p - unit - (V - 1) * L;
    const Numbers<Number> scale = splat(static_cast<Number>(s.p.scale));
    Pairs<Number, R, V> G(s, r0, unit);
    Numbers<Number> sum_a[V], sum_b[V];
    each<1, V>([&](int, int v) { sum_a[v] = load(da + unit + v * L), sum_b[v] = load(db + unit + v * L); });
    for (int64_t t = to - 1; t >= from; --t) {
      const Number *before = t ? states + s.at(r0, t - 1) : static_cast<const Number *>(s.p.z0) + (s.row + r0) * 2 * p;
      const int64_t now = s.at(r0, t) + unit, stride = s.p.T * 2 * p, stride_before = t ? stride : 2 * p;
      const Numbers<Number> to_scale = t ? splat(Number(1)) : scale;  // z0 is not scaled
      each<R, V>([&](int r, int v) {
        const int64_t here = now + r * stride + v * L, n = v < V - 1 ? L : left;
        Number *out = drive + (r0 + r) * lies.row + (t - lies.first) * 2 * p + unit + v * L;
        const Number *z = before + r * stride_before + unit + v * L;
        Numbers<Number> x = G.re[r][v], y = G.im[r][v];
        if (Given) x += scale * load(given + here, n), y += scale * load(given + here + p, n);
        const Numbers<Number> re = to_scale * load(z, n), im = to_scale * load(z + p, n);
        store(out, x, n);
        store(out + p, y, n);
        G.re[r][v] = G.a[v] * x + G.b[v] * y;
        G.im[r][v] = G.a[v] * y - G.b[v] * x;
        sum_a[v] += x * re + y * im;
        sum_b[v] += y * re - x * im;
      });
    }
    each<1, V>([&](int, int v) { store(da + unit + v * L, sum_a[v]), store(db + unit + v * L, sum_b[v]); });
    G.keep(s, r0, unit);
  }
};

// Steps from..to-1 of one sequence: all of its vectors for some steps, then the next steps.
template <typename Walk>
void walk_alone(const Walk &walk, int64_t r, int64_t from, int64_t to) {
  typedef typename Walk::Number Number;
  constexpr int64_t L = kLanes<Number>;
  const int64_t P = walk.s.P, vectors = P / L;
  const bool one_tile = vectors <= Walk::kWidest && (vectors & (vectors - 1)) == 0;
  const int64_t fitting = std::max<int64_t>(1, kScanChunk / (4 * P * static_cast<int64_t>(sizeof(Number))));
  const int64_t steps = one_tile ? std::max<int64_t>(1, to - from) : fitting;
  for (int64_t done = 0; done < to - from; done += steps) {
    const int64_t now = std::min(steps, to - from - done), start = Walk::kBackwards ? to - done - now : from + done;
    for (int64_t unit = 0; unit < P;) {
      const int64_t there = std::min<int64_t>(Walk::kWidest, (P - unit) / L);
      if (there >= 8)
        walk.template run<1, 8>(r, unit, start, start + now), unit += 8 * L;
      else if (there >= 4)
        walk.template run<1, 4>(r, unit, start, start + now), unit += 4 * L;
      else if (there >= 2)
        walk.template run<1, 2>(r, unit, start, start + now), unit += 2 * L;
      else
        walk.template run<1, 1>(r, unit, start, start + now), unit += L;
    }
  }
}

// Steps from..to-1 of a block: narrow sequences together for as long as all of them last, and then what is left of each.
template <typename Walk>
void walk_block(const Walk &walk, int64_t from, int64_t to) {
  const auto &s = walk.s;
  const int64_t vectors = s.P / kLanes<typename Walk::Number>, together = vectors <= 2 ? 4 / vectors : 1;
  const auto end = [&](int64_t i) { return std::max(from, std::min(to, s.length(i))); };
  for (int64_t r = 0; r < s.rows(); r += together) {
    const int64_t last = std::min(r + together, s.rows());
    int64_t common = together > 1 && last - r == together ? to : from;
    for (int64_t i = r; i < last; ++i) common = std::min(common, end(i));
    const auto alone = [&] {
      for (int64_t i = r; i < last; ++i) walk_alone(walk, i, common, end(i));
    };
    if (Walk::kBackwards) alone();
    if (common > from && vectors == 1) walk.template run<4, 1>(r, 0, from, common);
    if (common > from && vectors == 2) walk.template run<2, 2>(r, 0, from, common);
    if (!Walk::kBackwards) alone();
  }
}

template <typename Number>
void fill_past_the_end(const Rotated<Number> &s, Number *out) {
  for (int64_t r = 0; r < s.rows(); ++r)
    std::fill_n(out + s.at(r, s.length(r)), (s.p.T - s.length(r)) * 2 * s.p.p, Number(0));
}

// z0 or a gradient of the last state into the padded rows, and back out of them.
template <typename Number>
void load_rows(const Rotated<Number> &s, const void *from) {
  const int64_t p = s.p.p;
  std::fill_n(s.state, ROTATED * 2 * s.P, Number(0));
  for (int64_t r = 0; from && r < s.rows(); ++r)
    for (int half = 0; half < 2; ++half)
      std::copy_n(static_cast<const Number *>(from) + ((s.row + r) * 2 + half) * p, p, s.state + (r * 2 + half) * s.P);
}

template <typename Number>
void store_rows(const Rotated<Number> &s, void *to) {
  const int64_t p = s.p.p;
  for (int64_t r = 0; r < s.rows(); ++r)
    for (int half = 0; half < 2; ++half)
      std::copy_n(s.state + (r * 2 + half) * s.P, p, static_cast<Number *>(to) + ((s.row + r) * 2 + half) * p);
}

template <typename Number>
Rotated<Number> block_of(const qornn_rotations &p, const void *lambda, void *state, int64_t block) {
  const int64_t P = (p.p + kLanes<Number> - 1) / kLanes<Number> * kLanes<Number>;
  const Number *a = static_cast<const Number *>(lambda);
  return Rotated<Number>{p, a, a + P, P, static_cast<Number *>(state), block * ROTATED};
}

template <typename Number>
void scan(const qornn_rotations &p, const void *lambda, void *state, const void *drive_, void *last, void *peak_,
          int64_t first, int64_t end) {
  const Number *drive = static_cast<const Number *>(drive_);
  Number *states = static_cast<Number *>(p.states), *peak = static_cast<Number *>(peak_);
  for (int64_t block = first; block < end; ++block) {
    const Rotated<Number> s = block_of<Number>(p, lambda, state, block);
    const Strides lies{p.T * 2 * p.p, 0};
    load_rows(s, p.z0);
    if (p.top)
      walk_block(ScanForward<Number, true>{s, drive + s.at(0, 0), lies, states, peak}, 0, p.T);
    else
      walk_block(ScanForward<Number, false>{s, drive + s.at(0, 0), lies, states, peak}, 0, p.T);
    store_rows(s, last);
    fill_past_the_end(s, states);
  }
}

template <typename Number>
void scan_backward(const qornn_rotations &p, const qornn_rotations_gradients &g, const void *lambda, void *state,
                   void *sums, int64_t first, int64_t end) {
  const Number *given = static_cast<const Number *>(g.states), *states = static_cast<const Number *>(p.states);
  Number *drive = static_cast<Number *>(g.drive);
  for (int64_t block = first; block < end; ++block) {
    const Rotated<Number> s = block_of<Number>(p, lambda, state, block);
    Number *da = static_cast<Number *>(sums) + block * 2 * s.P, *db = da + s.P;
    const Strides lies{p.T * 2 * p.p, 0};
    load_rows(s, g.last);
    if (given)
      walk_block(ScanBackward<Number, true>{s, given, states, drive + s.at(0, 0), lies, da, db}, 0, p.T);
    else
      walk_block(ScanBackward<Number, false>{s, given, states, drive + s.at(0, 0), lies, da, db}, 0, p.T);
    store_rows(s, g.z0);
    fill_past_the_end(s, drive);
  }
}

// Elements first..end-1; the largest of acc goes to *peak.
template <typename Number, bool Round>
void rounded_relu_as(const Number *acc, Number step, Number top, Number *y, Number *peak, int64_t first, int64_t end) {
  constexpr int64_t L = kLanes<Number>;
  const Numbers<Number> zero{}, scale = splat(step), inverse = splat(Number(1) / step), limit = splat(top),
                                half = splat(Number(0.5));
  Numbers<Number> most = splat(acc[first]);  // passes over NaN, which the largest positive one in bits does not
  Bits<Number> positive{};
  const auto one = [&](Numbers<Number> v) {
    most = at_least(most, v);
    v = at_least(v, zero);
    positive = larger(positive, magnitude<Number>(v));
    return Round ? scale * trunc(at_most(v * inverse, limit) + half) : v;
  };
  int64_t i = first;
  for (; i + L <= end; i += L) store(y + i, one(load(acc + i)));
  Number tail[L];
  std::fill_n(tail, L, acc[first]);  // changes no maximum
  std::copy(acc + i, acc + end, tail);
  store(y + i, one(load(tail)), end - i);
  const Numbers<Number> with_nan = (Numbers<Number>)positive;
  *peak = most[0];
  for (int64_t l = 0; l < L; ++l)
    if (with_nan[l] != with_nan[l] || most[l] > *peak) *peak = with_nan[l] != with_nan[l] ? with_nan[l] : most[l];
}

template <typename Number>
void rounded_relu(const void *acc, double step, int64_t top, void *y, void *peak, int64_t first, int64_t end) {
  const auto run = step == 0 ? rounded_relu_as<Number, false> : rounded_relu_as<Number, true>;
  run(static_cast<const Number *>(acc), static_cast<Number>(step), static_cast<Number>(top), static_cast<Number *>(y),
      static_cast<Number *>(peak), first, end);
}
