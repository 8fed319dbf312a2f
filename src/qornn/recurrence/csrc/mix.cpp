// Pads the weights, gives every thread its own rows or sequences, and puts their maxima and sums together.

#include "mix.h"

#include "job.h"

namespace {

using qornn::Job;
using qornn::Kernel;
using qornn::larger;
using qornn::share;
using qornn::thread_count;
using qornn::without_exceptions;
using qornn::Zeros;

constexpr int64_t kParts = 16;         // of sums: their number, not that of the threads, decides how sums are added
constexpr int64_t kRowsOfAPart = 512;  // at least
// Multiplications, some 70 microseconds. Kernels of a third of that, as of 16 sequences, were slower on two threads than
// on one where other programs run: whoever waits for a thread that is not scheduled waits for long.
constexpr int64_t kWorthAThread = 1 << 22;

int threads_for(int64_t wanted, int64_t shares, int64_t multiplications) {
  return static_cast<int>(std::max<int64_t>(1, std::min({wanted, shares, 1 + multiplications / kWorthAThread})));
}

int64_t padded(int64_t n) {
  const int64_t lanes = qornn::chosen_kernel().lanes;
  return (n + lanes - 1) / lanes * lanes;
}

// A (rows, columns) matrix, or its transpose, in rows of whole vectors; zeros past their ends.
class Padded {
 public:
  Padded(const float *matrix, int64_t rows, int64_t columns, bool transposed)
      : data_((transposed ? columns : rows) * padded(transposed ? rows : columns)) {
    const int64_t ld = padded(transposed ? rows : columns);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) data_.get()[transposed ? j * ld + i : i * ld + j] = matrix[i * columns + j];
  }
  const float *get() const { return data_.get(); }

 private:
  Zeros<float> data_;
};

// out (rows, columns) = the sum of `parts` matrices with padded rows, in their order.
void add_parts(float *out, const float *from, int64_t parts, int64_t stride, int64_t rows, int64_t columns) {
  const int64_t ld = padded(columns);
  for (int64_t i = 0; i < rows; ++i) {
    float *to = out + i * columns;
    std::copy_n(from + i * ld, columns, to);
    for (int64_t part = 1; part < parts; ++part)
      for (int64_t j = 0; j < columns; ++j) to[j] += from[part * stride + i * ld + j];
  }
}

void run_mix(const qornn_mix &p, float *y, int8_t *keep, float *peak) {
  const Kernel &kernel = qornn::chosen_kernel();
  const Padded C(p.C, p.d, p.n, true), S(p.S, p.d, p.n_skip, true), c(p.c, 1, p.d, false);
  const int64_t groups = (p.rows + kernel.rows - 1) / kernel.rows, D = padded(p.d);
  const int threads = threads_for(p.threads, groups, p.rows * p.d * (p.n + p.n_skip + 8));
  const Zeros<float> peaks(threads * 2 * D);
  share(groups, threads, [&](int i, int64_t first, int64_t end) {
    kernel.mix(p, C.get(), S.get(), c.get(), y, keep, peaks.get() + i * 2 * D, first * kernel.rows,
               std::min(p.rows, end * kernel.rows));
  });
  float most = peaks.get()[0];
  for (int i = 0; i < threads; ++i)
    for (int64_t j = 0; j < p.d; ++j) {
      const float *row = peaks.get() + i * 2 * D, positive = row[D + j];
      most = larger(most, positive != positive ? positive : row[j]);
    }
  *peak = most;
}

void run_mix_backward(const qornn_mix &p, const qornn_mix_gradients &g) {
  const Kernel &kernel = qornn::chosen_kernel();
  const Padded C(p.C, p.d, p.n, false), S(p.S, p.d, p.n_skip, false);
  const int64_t D = padded(p.d), N = padded(p.n), M = padded(p.n_skip), size = D + p.d * (N + M);
  const int64_t parts = std::max<int64_t>(1, std::min(kParts, p.rows / kRowsOfAPart));
  const int threads = threads_for(p.threads, parts, 2 * p.rows * p.d * (p.n + p.n_skip + 8));
  const int64_t scratch_size = kernel.mix_scratch(p);
  const Zeros<float> sums(parts * size), scratch(threads * scratch_size);
  share(parts, threads, [&](int i, int64_t first, int64_t end) {
    for (int64_t part = first; part < end; ++part)
      kernel.mix_backward(p, g, C.get(), S.get(), sums.get() + part * size, scratch.get() + i * scratch_size,
                          p.rows * part / parts, p.rows * (part + 1) / parts);
  });
  add_parts(g.dc, sums.get(), parts, size, 1, p.d);
  add_parts(g.dC, sums.get() + D, parts, size, p.d, p.n);
  if (p.n_skip) add_parts(g.dS, sums.get() + D + p.d * N, parts, size, p.d, p.n_skip);
}

int driven_threads(const qornn_rotations &p, const qornn_driven &d, int64_t shares) {
  return threads_for(p.threads, shares, p.B * p.T * 2 * p.p * (d.n + 8));
}

void run_driven_scan(const qornn_rotations &p, const qornn_driven &d, float *last, float *peak) {
  const Job<float> job(p);
  const Padded U(d.U, 2 * p.p, d.n, true);
  const int threads = driven_threads(p, d, job.blocks);
  const int64_t scratch_size = job.kernel.driven_scratch(p, d.n);
  const Zeros<float> peaks(threads * job.P), scratch(threads * scratch_size), state(threads * job.state_size());
  share(job.blocks, threads, [&](int i, int64_t first, int64_t end) {
    job.kernel.driven_scan(p, d, job.lambda.get(), state.get() + i * job.state_size(), U.get(), last,
                           peaks.get() + i * job.P, scratch.get() + i * scratch_size, first, end);
  });
  for (int64_t j = 0; j < p.p; ++j) {
    peak[j] = 0;
    for (int i = 0; i < threads; ++i) peak[j] = larger(peak[j], peaks.get()[i * job.P + j]);
  }
}

void run_driven_scan_backward(const qornn_rotations &p, const qornn_rotations_gradients &g, const qornn_driven &d) {
  const Job<float> job(p);
  const Padded U(d.U, 2 * p.p, d.n, false);
  const int64_t parts = std::min(kParts, job.blocks), size = 2 * job.P + 2 * p.p * padded(d.n);
  const int threads = driven_threads(p, d, parts);
  const int64_t scratch_size = job.kernel.driven_scratch(p, d.n);
  const Zeros<float> sums(parts * size), scratch(threads * scratch_size), state(threads * job.state_size());
  share(parts, threads, [&](int i, int64_t first, int64_t end) {
    for (int64_t part = first; part < end; ++part)
      job.kernel.driven_scan_backward(p, g, d, job.lambda.get(), state.get() + i * job.state_size(), U.get(),
                                      sums.get() + part * size, scratch.get() + i * scratch_size,
                                      job.blocks * part / parts, job.blocks * (part + 1) / parts);
  });
  float *da = static_cast<float *>(g.a), *db = static_cast<float *>(g.b);
  add_parts(da, sums.get(), parts, size, 1, p.p);
  add_parts(db, sums.get() + job.P, parts, size, 1, p.p);
  add_parts(d.dU, sums.get() + 2 * job.P, parts, size, 2 * p.p, d.n);
  for (int64_t j = 0; j < p.p; ++j) {  // of scaled states until here
    da[j] /= static_cast<float>(p.scale);
    db[j] /= static_cast<float>(p.scale);
  }
}

}  // namespace

extern "C" int qornn_mix_forward(const qornn_mix *p, float *y, int8_t *keep, float *peak) {
  return without_exceptions([&] { run_mix(*p, y, keep, peak); });
}

extern "C" int qornn_mix_backward(const qornn_mix *p, const qornn_mix_gradients *g) {
  return without_exceptions([&] { run_mix_backward(*p, *g); });
}

extern "C" int qornn_driven_scan(const qornn_rotations *p, const qornn_driven *d, float *last, float *peak) {
  return without_exceptions([&] { run_driven_scan(*p, *d, last, peak); });
}

extern "C" int qornn_driven_scan_backward(const qornn_rotations *p, const qornn_rotations_gradients *g,
                                          const qornn_driven *d) {
  return without_exceptions([&] { run_driven_scan_backward(*p, *g, *d); });
}
