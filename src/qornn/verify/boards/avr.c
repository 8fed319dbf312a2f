/* The replay on an AVR, where neither vectors nor words of text have room: whatever runs this chip feeds it. A byte is read
   from GPIOR1 and written to GPIOR0; what runs while GPIOR2 is 1 is a step, while it is 2 a readout. */
#include <avr/io.h>

#include "@name@.h"

static @name@_state @name@_example;
static @y_type@ @name@_example_y[@name@_N_O];

static uint8_t qornn_board_take(void) { return GPIOR1; }

static uint16_t qornn_board_take16(void) {
    const uint8_t low = qornn_board_take();
    return (uint16_t)(low | (uint16_t)qornn_board_take() << 8);
}

static uint32_t qornn_board_take32(void) {
    const uint16_t low = qornn_board_take16();
    return low | (uint32_t)qornn_board_take16() << 16;
}

static void qornn_board_give(const void *data, uint8_t bytes) {
    for (const uint8_t *at = (const uint8_t *)data; bytes > 0; bytes--) {
        GPIOR0 = *at++;
    }
}

/* Unit j of what the input and all layers keep, one after another. */
static int32_t qornn_board_unit_at(unsigned j) {
@unit_at@
}

static void qornn_board_set_unit(unsigned j, uint32_t seed) {
@set_unit@
}

static int32_t qornn_board_read_at(unsigned j) {
@read_at@
}

static void qornn_board_step(void) {
    int16_t x[@inputs_per_step@];
    for (unsigned i = 0; i < @inputs_per_step@u; i++) {
        x[i] = (int16_t)qornn_board_take16();
    }
    GPIOR2 = 1;
    (void)@name@_step(&@name@_example, @example_argument@);
    GPIOR2 = 2;
    @name@_predict(&@name@_example, @name@_example_y);
    GPIOR2 = 0;
    for (unsigned j = 0; j < @n_state@u; j++) {
        const int16_t unit = (int16_t)qornn_board_unit_at(j);
        qornn_board_give(&unit, 2);
    }
    for (unsigned j = 0; j < @n_read@u; j++) {
        const int32_t read = qornn_board_read_at(j);
        qornn_board_give(&read, 4);
    }
    for (unsigned o = 0; o < @name@_N_O; o++) {
        qornn_board_give(&@name@_example_y[o], 4);
    }
}

static void qornn_board_quantize(void) {
#ifdef BOARD_FLOATS
    int16_t raw[@inputs_per_step@];
    union {
        uint32_t bits;
        float value;
    } samples[@inputs_per_step@];
    for (unsigned i = 0; i < @inputs_per_step@u; i++) {
        samples[i].bits = qornn_board_take32();
    }
    @name@_quantize(&samples[0].value, raw);
    for (unsigned i = 0; i < @inputs_per_step@u; i++) {
        qornn_board_give(&raw[i], 2);
    }
#endif
}

int main(void) {
    for (;;) { /* until there is nothing to take */
        const uint8_t what = qornn_board_take();
        if (what == 'i') {
            @name@_init(&@name@_example);
        } else if (what == 'u') {
            for (unsigned j = 0; j < @n_state@u; j++) {
                qornn_board_set_unit(j, qornn_board_take32());
            }
        } else if (what == 's') {
            qornn_board_step();
        } else if (what == 'f') {
            qornn_board_quantize();
        } else if (what == 'c') {
            const uint32_t hash = @name@_checksum();
            qornn_board_give(&hash, 4);
        }
    }
}
