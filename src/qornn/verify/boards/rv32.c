/* Start-up of a 32-bit RISC-V, in machine mode; text and the end of the run by the calls of arm.c, made with ECALL:
   unicorn takes the EBREAK of semihosting for an invalid instruction. */
#include <stdint.h>

extern uint32_t data_start[], data_end[], bss_start[], bss_end[];
extern const uint32_t data_image[];
int main(void);
void board_start(void);
void board_say(const char *text);

__asm__(
    ".section .vectors, \"ax\"\n"
    ".globl board_reset\n"
    "board_reset:\n"
    "    la sp, stack_top\n"
    "    tail board_start\n"
    ".text\n");

static void host(uint32_t call, uint32_t argument) {
    register uint32_t a0 __asm__("a0") = call;
    register uint32_t a1 __asm__("a1") = argument;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1) : "memory");
}

void board_say(const char *text) { host(0x04, (uint32_t)text); }

void board_start(void) {
    const uint32_t *from = data_image;
    for (volatile uint32_t *to = data_start; to < data_end; to++) {
        *to = *from++;
    }
    for (volatile uint32_t *to = bss_start; to < bss_end; to++) {
        *to = 0;
    }
    const int failed = main();
    for (;;) {
        host(0x18, failed ? 0x20023 : 0x20026);
    }
}
