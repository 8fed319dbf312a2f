/* Test vectors of @name@, from `qornn.simulate`.  @marker@ @version@

   @sequences@ sequences of @steps@ steps from the zero state, then @probes@ single steps from states spread over their range.
   Every state and every output is here as its FNV-1a hash; the first @full@ states and each sequence's last outputs whole. */
#ifndef @NAME@_VECTORS_H
#define @NAME@_VECTORS_H

#include <stdint.h>

#define @NAME@_SEQUENCES @sequences@
#define @NAME@_STEPS @steps@
#define @NAME@_TOTAL @total@
#define @NAME@_INPUTS @inputs_per_step@
#define @NAME@_FULL @full@
#define @NAME@_SEED @seed@u
#define @NAME@_VECTORS_BYTES @vectors_bytes@

@arrays@
#endif
