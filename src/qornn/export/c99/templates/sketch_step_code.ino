    @name@_step(&state, read_code());
