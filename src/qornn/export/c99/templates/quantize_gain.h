
/* @name@_N_I float samples, in the units of the training data, to raw ones: round(x gain + offset), ties away from zero, clamped; @nan_is@.
   The only use of double: without it, build with -D@name@_NO_QUANTIZE, or let the linker drop it. */
#ifndef @name@_NO_QUANTIZE
void @name@_quantize(const float *samples, int16_t *raw);
#endif
