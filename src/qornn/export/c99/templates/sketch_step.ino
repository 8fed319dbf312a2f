    int16_t x[@name@_N_I];
    read_samples(x);
    @name@_step(&state, x);
