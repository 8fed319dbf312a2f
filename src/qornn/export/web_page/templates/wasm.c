/* What the page calls. The replay of the test vectors is the one of every device, and its state is the page's too. */
#define SAID 65536u
#define EXPORT(name) __attribute__((export_name(#name)))

static char said_text[SAID];
static unsigned said_bytes;

void page_say(const char *text) {
    for (; *text != '\0' && said_bytes < SAID; text++) {
        said_text[said_bytes++] = *text;
    }
}

#define EXAMPLE_SAY page_say
#define main page_replay
#include "test_main.c"
#undef main

static int16_t page_raw[@name@_INPUTS];
static int32_t page_units[@name@_N_STATE];

EXPORT(replay) int replay(void) {
    said_bytes = 0;
    return page_replay();
}
EXPORT(said) const char *said(void) { return said_text; }
EXPORT(said_length) unsigned said_length(void) { return said_bytes; }

EXPORT(raw) int16_t *raw(void) { return page_raw; }
EXPORT(init) void init(void) { @name@_init(&@name@_example); }
EXPORT(step) int step(void) {
    const int16_t *x = page_raw;
    return @name@_step(&@name@_example, @example_argument@);
}

EXPORT(predict) const @y_type@ *predict(void) {
    @name@_predict(&@name@_example, @name@_example_y);
    return @name@_example_y;
}

/* T of a mean; 1 where the state is read out as it is. */
EXPORT(count) int32_t count(void) { return @count@; }

EXPORT(states) const int32_t *states(void) {
    for (unsigned j = 0; j < @name@_N_STATE; j++) {
        page_units[j] = unit_at(j);
    }
    return page_units;
}
@floats@
