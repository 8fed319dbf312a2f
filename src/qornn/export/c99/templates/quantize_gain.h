
/* @name@_N_I float samples, in the units of the training data, to raw ones: round(x gain + offset), ties away from zero, clamped; @nan_is@.
   The only use of double: without it, build with -D@name@_NO_QUANTIZE, or let the linker drop it. Where double has 32 bits,
   as on AVR, it would round otherwise, so it is not there: give @name@_step raw samples. */
#if defined(__SIZEOF_DOUBLE__) && __SIZEOF_DOUBLE__ < 8 && !defined(@name@_NO_QUANTIZE)
#define @name@_NO_QUANTIZE
#endif
#ifndef @name@_NO_QUANTIZE
void @name@_quantize(const float *samples, int16_t *raw);
#endif
