/* The product of one plane of four rows with the state, for whichever width f each qornn_plane<f>.c asks.

   A word holds 32/f unsigned weights: field i of its low half (bits f i and up) is weight 2i of the group, the same
   field of its high half weight 2i + 1. So (word >> f i) & mask is a pair of 16-bit weights that meets the pair of
   states (h[2i], h[2i+1]) with no shuffling. */
#ifndef QORNN_PLANE_H
#define QORNN_PLANE_H

#include "qornn.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include "qornn_plane_mve.h"
#elif QORNN_ASSEMBLY && defined(__ARM_FEATURE_DSP)
#include "qornn_plane_dsp.h"
#elif QORNN_ASSEMBLY && defined(__ARM_ARCH_6M__)
#include "qornn_plane_v6m.h"
#elif defined(__AVR__)
#include "qornn_plane_avr.h"
#else
#include "qornn_plane_portable.h"
#endif

#endif
