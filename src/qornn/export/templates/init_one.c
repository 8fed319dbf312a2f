    for (unsigned j = 0; j < @name@_UNITS; j++) {
        s->h[j] = 0;
    }
