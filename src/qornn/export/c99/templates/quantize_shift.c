
#ifndef @name@_NO_QUANTIZE
@exponents@
typedef char @name@_float_has_32_bits[sizeof(float) == 4 ? 1 : -1];

void @name@_quantize(const float *samples, int16_t *raw) {
    for (unsigned i = 0, c = 0; i < @name@_N_I; i++, @next@) {
        uint32_t bits = 0; /* sign, exponent + 127, and 23 bits of the mantissa below its leading one */
        for (unsigned j = 0; j < 4; j++) {
            ((unsigned char *)&bits)[j] = ((const unsigned char *)&samples[i])[j];
        }
        const uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
        const int32_t down = 150 + @name@_raw_exponent[c] - (int32_t)((bits >> 23) & 0xffu);
        int32_t whole = 65536; /* past every limit */
        if (down > 25) {
            whole = 0;
        } else if (down >= 8) {
            whole = (int32_t)((mantissa + ((uint32_t)1 << (down - 1))) >> down);
        }
        whole = (bits >> 31) != 0u ? -whole : whole;
        if ((bits & 0x7fffffffu) > 0x7f800000u) {
            whole = @nan@;
        } else if (whole < @low@) {
            whole = @low@;
        } else if (whole > @high@) {
            whole = @high@;
        }
        raw[i] = (int16_t)whole;
    }
}
#endif
