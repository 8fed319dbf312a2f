
#ifndef @name@_NO_QUANTIZE
        if (step >= @name@_STEPS && step < @name@_STEPS + @name@_SAMPLED) { /* from what the sensor gives to the answer */
            @name@_quantize(@name@_samples + (step - @name@_STEPS) * @name@_N_I, made);
            for (unsigned i = 0; i < @name@_N_I; i++) {
                if (made[i] != x[i]) {
                    say_number("differs step=", (int32_t)step);
                    say_number(" input=", (int32_t)i);
                    say_number(" got=", made[i]);
                    say_number(" want=", x[i]);
                    EXAMPLE_SAY("\n");
                    return 1;
                }
            }
            x = made;
        }
#endif