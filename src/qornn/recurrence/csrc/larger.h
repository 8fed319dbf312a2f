#ifndef QORNN_LARGER_H
#define QORNN_LARGER_H

namespace qornn {

// The larger; NaN where either is.
template <typename Number>
Number larger(Number a, Number b) {
  return a != a || a > b ? a : b;  // where b is NaN no comparison holds
}

}  // namespace qornn
#endif
