/* RP2040: samples from GPIO26 by the converter, which runs without end; GPIO15 is the timing pin. 12 MHz, the crystal. */
#include "board.h"

#define CLEAR 0x3000u /* of a register's address: the alias that clears bits */
#define RESETS 0x4000c000u
#define RESETS_DONE REGISTER(0x4000c008u)
#define XOSC_CTRL REGISTER(0x40024000u)
#define XOSC_STATUS REGISTER(0x40024004u)
#define XOSC_STARTUP REGISTER(0x4002400cu)
#define CLK_REF_CTRL REGISTER(0x40008030u)
#define CLK_ADC_CTRL REGISTER(0x40008060u)
#define GPIO15_CTRL REGISTER(0x4001407cu)
#define PAD_GPIO26 REGISTER(0x4001c06cu)
#define SIO_SET REGISTER(0xd0000014u)
#define SIO_CLEAR REGISTER(0xd0000018u)
#define SIO_ENABLE REGISTER(0xd0000024u)
#define ADC_CS REGISTER(0x4004c000u)
#define ADC_RESULT REGISTER(0x4004c004u)

void board_reset(void);

/* The first bytes of the image, where the boot ROM and debuggers begin. */
__attribute__((section(".entry"), used, naked)) void board_entry(void) {
    __asm__ volatile("ldr r0, =stack_top\n\tmov sp, r0\n\tldr r0, =board_reset\n\tbx r0\n\t.ltorg");
}

void board_start(uint32_t hertz) {
    const uint32_t parts = 1u << 0 | 1u << 5 | 1u << 8; /* converter, IO bank, pads */
    REGISTER(RESETS + CLEAR) = parts;
    while ((RESETS_DONE & parts) != parts) {
    }
    XOSC_STARTUP = 47u; /* about a millisecond */
    XOSC_CTRL = 0xfabaa0u;
    while ((XOSC_STATUS & 1u << 31) == 0u) {
    }
    CLK_REF_CTRL = 2u;                 /* the crystal, which the processor's clock follows */
    CLK_ADC_CTRL = 1u << 11 | 3u << 5; /* on, the crystal */
    GPIO15_CTRL = 5u;                  /* by the processor */
    SIO_ENABLE = 1u << 15;
    PAD_GPIO26 = 1u << 7;  /* analog: neither driven nor read as a digital pin */
    ADC_CS = 1u;           /* on, channel 0 */
    ADC_CS = 1u | 1u << 3; /* without end */
    board_systick(12000000u, hertz);
}

int16_t board_sample(void) { return (int16_t)(ADC_RESULT & 0xfffu); }

void board_pin(int high) {
    if (high) {
        SIO_SET = 1u << 15;
    } else {
        SIO_CLEAR = 1u << 15;
    }
}
