// Pads λ, gives every thread its own blocks of sequences, and puts their maxima and sums together.

#include "rotations.h"

#include "job.h"

namespace {

using qornn::Job;
using qornn::Kernel;
using qornn::larger;
using qornn::share;
using qornn::thread_count;
using qornn::without_exceptions;
using qornn::Zeros;

template <typename Number>
void run_scan(const qornn_rotations &p, const void *drive, void *last, void *peak) {
  const Job<Number> job(p);
  const Zeros<Number> peaks(job.threads * job.P);
  share(job.blocks, job.threads, [&](int i, int64_t first, int64_t end) {
    job.kernel.scan[sizeof(Number) == 8](p, job.lambda.get(), job.state_of(i), drive, last, peaks.get() + i * job.P,
                                         first, end);
  });
  for (int64_t j = 0; j < p.p; ++j) {
    Number most = 0;
    for (int i = 0; i < job.threads; ++i) most = larger(most, peaks.get()[i * job.P + j]);
    static_cast<Number *>(peak)[j] = most;
  }
}

template <typename Number>
void run_scan_backward(const qornn_rotations &p, const qornn_rotations_gradients &g) {
  const Job<Number> job(p);
  const Zeros<Number> sums(job.blocks * 2 * job.P);
  share(job.blocks, job.threads, [&](int i, int64_t first, int64_t end) {
    job.kernel.scan_backward[sizeof(Number) == 8](p, g, job.lambda.get(), job.state_of(i), sums.get(), first, end);
  });
  for (int64_t j = 0; j < p.p; ++j) {
    Number da = 0, db = 0;
    for (int64_t block = 0; block < job.blocks; ++block) {  // in the blocks' order, whoever summed them
      da += sums.get()[block * 2 * job.P + j];
      db += sums.get()[(block * 2 + 1) * job.P + j];
    }
    static_cast<Number *>(g.a)[j] = da / static_cast<Number>(p.scale);  // of scaled states until here
    static_cast<Number *>(g.b)[j] = db / static_cast<Number>(p.scale);
  }
}

template <typename Number>
void run_rounded_relu(int64_t n, const void *acc, double step, int64_t top, int32_t wanted, void *y, void *peak) {
  const Kernel &kernel = qornn::chosen_kernel();
  const int threads = thread_count(wanted, n, n);
  const Zeros<Number> peaks(threads);
  share(n, threads, [&](int i, int64_t first, int64_t end) {
    kernel.rounded_relu[sizeof(Number) == 8](acc, step, top, y, peaks.get() + i, first, end);
  });
  Number most = peaks.get()[0];
  for (int i = 1; i < threads; ++i) most = larger(most, peaks.get()[i]);
  *static_cast<Number *>(peak) = most;
}

}  // namespace

extern "C" int qornn_scan(const qornn_rotations *p, const void *drive, void *last, void *peak) {
  return without_exceptions([&] { (p->wide ? run_scan<double> : run_scan<float>)(*p, drive, last, peak); });
}

extern "C" int qornn_scan_backward(const qornn_rotations *p, const qornn_rotations_gradients *g) {
  return without_exceptions([&] { (p->wide ? run_scan_backward<double> : run_scan_backward<float>)(*p, *g); });
}

extern "C" int qornn_rounded_relu(int64_t n, const void *acc, double step, int64_t top, int32_t threads, int32_t wide,
                                  void *y, void *peak) {
  return without_exceptions(
      [&] { (wide ? run_rounded_relu<double> : run_rounded_relu<float>)(n, acc, step, top, threads, y, peak); });
}
