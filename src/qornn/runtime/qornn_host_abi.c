/* How the structs lie in memory, as one number. */
#include "qornn_host.h"

typedef struct {
    const char *name;
    size_t at, size;
} field;

#define PROGRAM(f) {#f, offsetof(qornn_program, f), sizeof(((qornn_program *)0)->f)}
#define MODEL(f) {#f, offsetof(qornn_host_model, f), sizeof(((qornn_host_model *)0)->f)}
#define BATCH(f) {#f, offsetof(qornn_batch, f), sizeof(((qornn_batch *)0)->f)}

/* Every field: a test holds the list against the headers. The program is the model's first. */
static const field fields[] = {
    PROGRAM(n_i), PROGRAM(n_h), PROGRAM(n_o), PROGRAM(bits_W), PROGRAM(bits_U), PROGRAM(bits_h), PROGRAM(bits_x),
    PROGRAM(input), PROGRAM(activation), PROGRAM(requant), PROGRAM(readout), PROGRAM(steps),
    PROGRAM(plain), PROGRAM(low), PROGRAM(high), PROGRAM(x_offset), PROGRAM(x_multiplier), PROGRAM(x_shift),
    PROGRAM(W_planes), PROGRAM(U_packed), PROGRAM(U_planes),
    PROGRAM(bias), PROGRAM(bias_wide), PROGRAM(shift_W), PROGRAM(shift_U), PROGRAM(shift),
    PROGRAM(multiplier), PROGRAM(thresholds), PROGRAM(M_W), PROGRAM(M_U),
    PROGRAM(M_I), PROGRAM(row_shift), PROGRAM(alike), PROGRAM(readout_relu), PROGRAM(V), PROGRAM(b_o),
    PROGRAM(scale), PROGRAM(V_int), PROGRAM(b_o_int), PROGRAM(recurrent), PROGRAM(moves), PROGRAM(block),
    PROGRAM(signs), PROGRAM(U_words), PROGRAM(bits_V), PROGRAM(V_packed), PROGRAM(mix),
    MODEL(W_bytes), MODEL(U_bytes), MODEL(W_blocks), MODEL(W_start), MODEL(V_columns), MODEL(row_bytes),
    BATCH(B), BATCH(T), BATCH(x), BATCH(lengths), BATCH(h), BATCH(states), BATCH(y), BATCH(work),
};

static uint32_t mix(uint32_t hash, size_t value) { return (hash ^ (uint32_t)value) * 0x01000193u; }

uint32_t qornn_abi(void) {
    uint32_t hash = mix(mix(0x811c9dc5u, sizeof(qornn_host_model)), sizeof(qornn_batch));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        for (const char *c = fields[i].name; *c; c++) {
            hash = mix(hash, (unsigned char)*c);
        }
        hash = mix(mix(hash, fields[i].at), fields[i].size);
    }
    return hash;
}
