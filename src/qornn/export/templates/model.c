/* @name@: constants and functions; see @name@.h.  @marker@ @version@ */
#include "@name@.h"

#include "qornn_step.h"

@arrays@
@program@
/* The buffers are as long as the kernels read. */
typedef char @name@_has_room[@name@_UNITS == QORNN_UNITS(@n_h@u, @group@) ? 1 : -1];
@x_room@
/* Once a sequence: small rather than fast. */
#if defined(__GNUC__)
__attribute__((cold))
#endif
void @name@_init(@name@_state *s) {
    s->now = 0;
    for (unsigned j = 0; j < @name@_UNITS; j++) {
        s->h[0][j] = 0;
        s->h[1][j] = 0;
    }
}

int @name@_step(@name@_state *s, @parameter@) {
    const unsigned now = s->now & 1u;
    const int result = @call@;
    s->now = result == QORNN_OK ? now ^ 1u : now;
    return result;
}

void @name@_predict(const @name@_state *s, @y_type@ *y) { @readout@(&@name@_program, s->h[s->now & 1u], y); }
@classify_c@@quantize_c@
static uint32_t @name@_fnv(uint32_t hash, const void *data, size_t size) {
    const unsigned char *byte = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ byte[i]) * 0x01000193u;
    }
    return hash;
}

uint32_t @name@_checksum(void) {
    uint32_t hash = 0x811c9dc5u;
@hash_arrays@
    return hash;
}
