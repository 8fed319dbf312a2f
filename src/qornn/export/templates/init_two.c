    s->now = 0;
    for (unsigned j = 0; j < @name@_UNITS; j++) {
        s->h[0][j] = 0;
        s->h[1][j] = 0;
    }
