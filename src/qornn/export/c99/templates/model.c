/* @name@: constants and functions; see @name@.h.  @marker@ @version@ */
@includes@
@arrays@
@input_struct@
@layer_structs@
@readout_struct@
/* The buffers are as long as the kernels read, and the memory is what the header says. */
@checks@@flash_check@typedef char @name@_ram_is_as_said[(sizeof(@name@_state) + 3u) / 4u * 4u + 4u * @name@_N_O == @name@_RAM_BYTES ? 1 : -1];

@layer_steps@
/* Once per sequence: small rather than fast. */
#if defined(__GNUC__)
__attribute__((cold))
#endif
void @name@_init(@name@_state *s) {
@init@
}

int @name@_step(@name@_state *s, @parameter@) {
@step@
}

void @name@_predict(const @name@_state *s, @y_type@ *y) { @predict@ }
@classify_c@@values_c@@quantize_c@
static uint32_t @name@_fnv(uint32_t hash, const QORNN_FLASH void *data, size_t size) {
    const QORNN_FLASH unsigned char *byte = (const QORNN_FLASH unsigned char *)data;
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
