    static unsigned long steps = 0;
    if (++steps == SEQUENCE_STEPS) { /* one answer per sequence; then the next one begins */
        @answer@
        @name@_init(&state);
        steps = 0;
    }
