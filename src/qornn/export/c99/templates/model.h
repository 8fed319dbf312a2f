/* @name@: @marker@ @version@

       @command@

@facts@

   Memory, in bytes
@memory@
     stack and code: `qornn verify FOLDER --target cortex-m4` measures them

   Multiply-accumulates
@work@

   One step at a time, in constant memory however long the signal:

       @name@_state s;
       @name@_init(&s);
       while (...) @name@_step(&s, @argument@);
       @name@_predict(&s, y);
*/
#ifndef @name@_H
#define @name@_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define @name@_N_I @n_i@
#define @name@_N_H @n_h@
#define @name@_N_O @n_o@
#define @name@_STATE_BITS @bits_h@
#define @name@_LAYERS @layers@
@memory_macros@
/* Owned by the caller, one for each signal. */
typedef @unit@ @name@_unit;
typedef struct {
@state_fields@
} @name@_state;

/* The @name@_N_H outputs of the last layer, each a @name@_unit, of the @name@_state that s points to. */
#define @name@_STATES(s) @state@

/* Before every sequence. */
void @name@_init(@name@_state *s);

@step_comment@
int @name@_step(@name@_state *s, @parameter@);

/* The @name@_N_O outputs of @outputs_of@. */
void @name@_predict(const @name@_state *s, @y_type@ *y);
@classify_h@@values_h@@quantize_h@
/* FNV-1a of all constants, to be compared with @name@_CHECKSUM where flash is not to be trusted. */
#define @name@_CHECKSUM @checksum@u
uint32_t @name@_checksum(void);

#ifdef __cplusplus
}
#endif

#endif
