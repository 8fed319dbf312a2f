
/* @name@_N_I float samples, in the units of the training data as the sensor gives them, to raw ones: sample / raw unit,
   rounded, ties away from zero, clamped; @nan_is@. A raw unit is 2^@name@_raw_exponent: no float arithmetic.
   Build with -D@name@_NO_QUANTIZE to leave it out, or let the linker drop it. */
#ifndef @name@_NO_QUANTIZE
void @name@_quantize(const float *samples, int16_t *raw);
#endif
