/* Start-up of a Cortex-M: vectors, .data and .bss, then main; text and the end of the run by semihosting, which
   QEMU, debuggers and verify/machine.py understand. */
#include <stdint.h>

extern uint32_t data_start[], data_end[], bss_start[], bss_end[], stack_top[];
extern const uint32_t data_image[];
int main(void);
void board_reset(void);
void board_fault(void);
void board_say(const char *text);

typedef union {
    void (*handler)(void);
    const void *stack;
} vector;

__attribute__((section(".vectors"), used)) const vector board_vectors[16] = {
    {.stack = stack_top},     {.handler = board_reset}, {.handler = board_fault}, {.handler = board_fault},
    {.handler = board_fault}, {.handler = board_fault}, {.handler = board_fault},
};

static void host(uint32_t call, uint32_t argument) {
    register uint32_t r0 __asm__("r0") = call;
    register uint32_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void leave(int failed) {
    for (;;) {
        host(0x18, failed ? 0x20023 : 0x20026); /* SYS_EXIT: run-time error, or the application's own exit */
    }
}

void board_say(const char *text) { host(0x04, (uint32_t)text); } /* SYS_WRITE0 */

void board_fault(void) {
    board_say("fault\n");
    leave(1);
}

void board_reset(void) {
    const uint32_t *from = data_image;
    for (volatile uint32_t *to = data_start; to < data_end; to++) {
        *to = *from++;
    }
    for (volatile uint32_t *to = bss_start; to < bss_end; to++) {
        *to = 0;
    }
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* CPACR: the floating point and vector unit */
    __asm__ volatile("dsb\n\tisb");
#endif
    leave(main());
}
