
#ifndef @NAME@_NO_QUANTIZE
void @name@_quantize(const float *samples, int16_t *raw) {
    for (unsigned c = 0; c < @NAME@_N_I; c++) {
        const double v = (double)samples[c] / @scale@;
        int32_t whole = @low@;
        if (v >= @high@.0) {
            whole = @high@;
        } else if (v > @low@.0) {
            whole = (int32_t)v;
            const double rest = v - (double)whole;
            whole += rest >= 0.5 ? 1 : rest <= -0.5 ? -1 : 0;
        }
        raw[c] = (int16_t)whole;
    }
}
#endif
