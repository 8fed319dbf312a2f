    int16_t x[@name@_N_I]; /* @order@ */
    for (int i = 0; i < @name@_N_I; i++) {
        x[i] = read_sample(i % @channels@);
    }
    @name@_step(&state, x);
