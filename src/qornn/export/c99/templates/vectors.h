/* Test vectors of @name@, from `qornn.simulate`.  @marker@ @version@

   @sequences@ sequences of @steps@ steps from the zero state, then @probes@ single steps from states spread over their range.
@samples_note@   Every state and every output is here as its FNV-1a hash; the first @full@ states and each sequence's last outputs whole. */
#ifndef @name@_VECTORS_H
#define @name@_VECTORS_H

#include <stdint.h>

#define @name@_FORMAT @format@
#define @name@_SEQUENCES @sequences@
#define @name@_STEPS @steps@
#define @name@_TOTAL @total@
#define @name@_N_STATE @n_state@
#define @name@_N_READ @n_read@
#define @name@_INPUTS @inputs_per_step@
#define @name@_FULL @full@
#define @name@_SAMPLED @sampled@
#define @name@_SEED @seed@u
#define @name@_VECTORS_BYTES @vectors_bytes@

@arrays@
#endif
