
void @name@_values(const @name@_state *s, float *values) {
    int32_t y[@name@_N_O];
    @name@_predict(s, y);
    for (unsigned o = 0; o < @name@_N_O; o++) {
        values[o] = (float)y[o] * @scale@ / (float)(s->count > 0u ? s->count : 1u)@offset@;
    }
}
