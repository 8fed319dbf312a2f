/* @name@: @marker@ @version@

       @command@

@facts@

   Memory, in bytes                                   (code and stack: `qornn verify FOLDER --target cortex-m4`)
@memory@

   One step at a time, in constant memory however long the signal:

       @name@_state s;
       @name@_init(&s);
       while (...) @name@_step(&s, @argument@);
       @name@_predict(&s, y);
*/
#ifndef @NAME@_H
#define @NAME@_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define @NAME@_N_I @n_i@
#define @NAME@_N_H @n_h@
#define @NAME@_N_O @n_o@
#define @NAME@_STATE_BITS @bits_h@
#define @NAME@_UNITS @units@ /* n_h, and zeros up to whole words of weights */
#define @NAME@_DATA_BYTES @data_bytes@ /* constants in flash */
#define @NAME@_RAM_BYTES @ram_bytes@ /* state and outputs */

/* Owned by the caller, one for each signal; @NAME@_N_H states are h[now]. */
typedef struct {
    uint32_t now;
    int16_t h[2][@NAME@_UNITS];
@x_field@} @name@_state;

/* Before every sequence. */
void @name@_init(@name@_state *s);

@step_comment@
int @name@_step(@name@_state *s, @parameter@);

/* The @NAME@_N_O outputs of the state as it is@units_of_y@. */
void @name@_predict(const @name@_state *s, @y_type@ *y);
@classify_h@@quantize_h@
/* FNV-1a of all constants, to be compared with @NAME@_CHECKSUM where flash is not to be trusted. */
#define @NAME@_CHECKSUM @checksum@u
uint32_t @name@_checksum(void);

#ifdef __cplusplus
}
#endif

#endif
