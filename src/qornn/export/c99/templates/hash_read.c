
        for (unsigned j = 0; j < @name@_N_READ; j++) {
            hash = mix(hash, (uint32_t)read_at(j), 4);
        }