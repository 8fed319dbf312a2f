
#ifndef @name@_NO_QUANTIZE
@gain@
void @name@_quantize(const float *samples, int16_t *raw) {
    for (unsigned i = 0, c = 0; i < @name@_N_I; i++, @next@) {
        const volatile double product = (double)samples[i] * @name@_gain[c]; /* rounded before it is added to, never fused */
        const double v = product@offset@;
        int32_t whole = samples[i] != samples[i] ? @nan@ : @low@;
        if (v >= @high@.0) {
            whole = @high@;
        } else if (v > @low@.0) {
            whole = (int32_t)v;
            const double rest = v - (double)whole;
            whole += rest >= 0.5 ? 1 : rest <= -0.5 ? -1 : 0;
        }
        raw[i] = (int16_t)whole;
    }
}
#endif
