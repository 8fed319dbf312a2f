/* @name@: constants and functions; see @name@.h.  @marker@ @version@ */
#include "@name@.h"

#include "qornn_step.h"

@arrays@
@program@
@has_room@@x_room@
/* Once a sequence: small rather than fast. */
#if defined(__GNUC__)
__attribute__((cold))
#endif
void @name@_init(@name@_state *s) {
@init@}

int @name@_step(@name@_state *s, @parameter@) {
@step@
}

void @name@_predict(const @name@_state *s, @y_type@ *y) { @readout@@readout_suffix@(&@name@_program, @name@_STATES(s), y); }
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
