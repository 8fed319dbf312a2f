/* Replays @name@_vectors.h step by step: prints "exact steps=N", or the first difference, and returns 0 or 1.

   A board without stdio is built with -DEXAMPLE_SAY=its_puts, a function void its_puts(const char *text). */
@test_includes@
#ifdef EXAMPLE_SAY
#ifdef __cplusplus
extern "C"
#endif
    void EXAMPLE_SAY(const char *text);
#else
#include <stdio.h>
#define EXAMPLE_SAY(text) (void)fputs(text, stdout)
#endif

static @name@_state @name@_example;
static @y_type@ @name@_example_y[@name@_N_O];

/* Without division, which small cores lack. */
static void say_number(const char *before, int32_t value) {
    static const uint32_t powers[10] = {1000000000u, 100000000u, 10000000u, 1000000u, 100000u,
                                        10000u,      1000u,      100u,      10u,      1u};
    uint32_t left = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    char text[12];
    unsigned n = 0;
    if (value < 0) {
        text[n++] = '-';
    }
    for (unsigned i = 0, started = 0; i < 10; i++) {
        char digit = '0';
        while (left >= powers[i]) {
            left -= powers[i];
            digit++;
        }
        started |= digit != '0' || i == 9;
        if (started) {
            text[n++] = digit;
        }
    }
    text[n] = '\0';
    EXAMPLE_SAY(before);
    EXAMPLE_SAY(text);
}

/* Unit j of what the input and all layers keep, one after another. */
static int32_t unit_at(unsigned j) {
@unit_at@
}

/* The same from random bits, spread over its whole range. */
static void set_unit(unsigned j, uint32_t seed) {
@set_unit@
}

/* Number j of what is read out: outputs of the last layer, or where it is their mean the sums and the count. */
static int32_t read_at(unsigned j) {
@read_at@
}

static void say_state(const char *title) {
    EXAMPLE_SAY(title);
    for (unsigned j = 0; j < @name@_N_STATE; j++) {
        say_number(" ", unit_at(j));
    }
    EXAMPLE_SAY("\n");
}

/* FNV-1a, byte by byte, lowest first. */
static uint32_t mix(uint32_t hash, uint32_t value, unsigned bytes) {
    for (; bytes > 0; bytes--, value >>= 8) {
        hash = (hash ^ (value & 0xffu)) * 0x01000193u;
    }
    return hash;
}

static uint32_t bits_of(const @y_type@ *y) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < 4; i++) {
        ((unsigned char *)&bits)[i] = ((const unsigned char *)y)[i];
    }
    return bits;
}

/* A state spread over its whole range: one step from there meets every weight. */
static uint32_t probe(uint32_t seed) {
    @name@_init(&@name@_example);
    for (unsigned j = 0; j < @name@_N_STATE; j++) {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        set_unit(j, seed);
    }
    return seed;
}

static const int16_t *input(unsigned step) { return @name@_inputs + step * @name@_INPUTS; }

/* Back to the state that a step began from: every step before it was exact. */
static void rewind_to(unsigned step) {
    if (step >= @name@_SEQUENCES * @name@_STEPS) {
        uint32_t seed = @name@_SEED;
        for (unsigned s = @name@_SEQUENCES * @name@_STEPS; s <= step; s++) {
            seed = probe(seed);
        }
        return;
    }
    @name@_init(&@name@_example);
    for (unsigned s = step - step % @name@_STEPS; s < step; s++) {
        const int16_t *x = input(s);
        (void)@name@_step(&@name@_example, @example_argument@);
    }
}

static int differs(unsigned step) {
    say_number("differs step=", (int32_t)step);
    for (unsigned j = 0; step < @name@_FULL && j < @name@_N_STATE; j++) {
        const int16_t want = @name@_states[step * @name@_N_STATE + j];
        if (unit_at(j) != want) {
            say_number(" unit=", (int32_t)j);
            say_number(" got=", unit_at(j));
            say_number(" want=", want);
            break;
        }
    }
    /* For whoever knows the program: what the step was given and what came out. */
    EXAMPLE_SAY("\n");
    EXAMPLE_SAY("input");
    for (unsigned i = 0; i < @name@_INPUTS; i++) {
        say_number(" ", input(step)[i]);
    }
    EXAMPLE_SAY("\n");
    say_state("state");
    rewind_to(step);
    say_state("before");
    return 1;
}

static int output_differs(unsigned step) {
    say_number("differs step=", (int32_t)step);
    EXAMPLE_SAY(" outputs\n");
    say_state("state");
    EXAMPLE_SAY("read");
    for (unsigned j = 0; j < @name@_N_READ; j++) {
        say_number(" ", read_at(j));
    }
    EXAMPLE_SAY("\n");
    EXAMPLE_SAY("outputs");
    for (unsigned o = 0; o < @name@_N_O; o++) {
        say_number(" ", (int32_t)bits_of(&@name@_example_y[o]));
    }
    EXAMPLE_SAY("\n");
    return 1;
}

int main(void) {
    uint32_t seed = @name@_SEED;@replay_x@
    for (unsigned step = 0; step < @name@_TOTAL; step++) {
        const int16_t *x = input(step);@replay_floats@
        if (step >= @name@_SEQUENCES * @name@_STEPS) {
            seed = probe(seed);
        } else if (step % @name@_STEPS == 0) {
            @name@_init(&@name@_example);
        }
        (void)@name@_step(&@name@_example, @example_argument@);
        @name@_predict(&@name@_example, @name@_example_y);

        uint32_t hash = 0x811c9dc5u;
        for (unsigned j = 0; j < @name@_N_STATE; j++) {
            hash = mix(hash, (uint16_t)unit_at(j), 2);
        }
        if (hash != @name@_state_hashes[step]) {
            return differs(step);
        }
        hash = 0x811c9dc5u;
        for (unsigned o = 0; o < @name@_N_O; o++) {
            hash = mix(hash, bits_of(&@name@_example_y[o]), 4);
        }@hash_read@
        if (hash != @name@_output_hashes[step]) {
            return output_differs(step);
        }
    }
    if (@name@_checksum() != @name@_CHECKSUM) {
        EXAMPLE_SAY("differs checksum\n");
        return 1;
    }
    say_number("exact steps=", @name@_TOTAL);
    EXAMPLE_SAY("\n");
    return 0;
}
