/* Vectors and start-up of a Cortex-M, by the symbols of link.ld. */
#include "board.h"

extern uint32_t data_start[], data_end[], bss_start[], bss_end[], stack_top[];
extern const uint32_t data_image[];
int main(void);
void board_reset(void);
void board_fault(void);

typedef union {
    void (*handler)(void);
    const void *stack;
} vector;

__attribute__((section(".vectors"), used)) const vector board_vectors[16] = {
    {.stack = stack_top},
    {.handler = board_reset},
    {.handler = board_fault},
    {.handler = board_fault},
    {.handler = board_fault},
    {.handler = board_fault},
    {.handler = board_fault},
    {0},
    {0},
    {0},
    {0},
    {.handler = board_fault},
    {0},
    {0},
    {.handler = board_fault},
    {.handler = board_tick},
};

void board_fault(void) {
    for (;;) {
    }
}

void board_reset(void) {
    const uint32_t *from = data_image;
    for (volatile uint32_t *to = data_start; to < data_end; to++) {
        *to = *from++;
    }
    for (volatile uint32_t *to = bss_start; to < bss_end; to++) {
        *to = 0;
    }
    REGISTER(0xe000ed08u) = (uint32_t)board_vectors; /* VTOR */
#if defined(__ARM_FP)
    REGISTER(0xe000ed88u) |= 0xfu << 20; /* CPACR: the floating point unit */
    __asm__ volatile("dsb\n\tisb");
#endif
    (void)main();
    board_fault();
}
