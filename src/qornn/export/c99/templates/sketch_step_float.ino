    float samples[@name@_N_I]; /* @order@ */
    int16_t x[@name@_N_I];
    for (int i = 0; i < @name@_N_I; i++) {
        samples[i] = read_sample(i % @channels@);
    }
    @name@_quantize(samples, x);
    @name@_step(&state, x);
