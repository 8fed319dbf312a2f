/* What a board gives to main.c, and what it calls there. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void board_start(uint32_t hertz); /* clocks, pins, converter, and a timer that ticks so often per second */
int16_t board_sample(void);       /* the newest sample of the converter */
void board_pin(int high);         /* the timing pin */
void board_tick(void);            /* of main.c, called by the timer's interrupt */

#define REGISTER(address) (*(volatile uint32_t *)(address))

/* SysTick, the same timer in every Cortex-M. */
static inline void board_systick(uint32_t core_hertz, uint32_t hertz) {
    REGISTER(0xe000e014u) = core_hertz / hertz - 1u; /* reload: 24 bits */
    REGISTER(0xe000e018u) = 0u;
    REGISTER(0xe000e010u) = 7u; /* the core's clock, interrupt, on */
}

#endif
