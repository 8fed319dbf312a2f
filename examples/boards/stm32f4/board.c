/* STM32F4: samples from PA0 by ADC1, which converts without end; PA5 is the timing pin. 16 MHz, the clock after reset. */
#include "board.h"

#define RCC_AHB1ENR REGISTER(0x40023830u)
#define RCC_APB2ENR REGISTER(0x40023844u)
#define GPIOA_MODER REGISTER(0x40020000u)
#define GPIOA_BSRR REGISTER(0x40020018u)
#define ADC1_CR2 REGISTER(0x40012008u)
#define ADC1_SMPR2 REGISTER(0x40012010u)
#define ADC1_DR REGISTER(0x4001204cu)

void board_start(uint32_t hertz) {
    RCC_AHB1ENR |= 1u;                                         /* GPIOA */
    RCC_APB2ENR |= 1u << 8;                                    /* ADC1 */
    GPIOA_MODER = (GPIOA_MODER & ~(3u << 10)) | 1u << 10 | 3u; /* PA5 output, PA0 analog */
    ADC1_SMPR2 = 7u;                                           /* channel 0, the first of the sequence: 480 cycles */
    ADC1_CR2 = 3u;                                             /* on, continuous */
    ADC1_CR2 |= 1u << 30;                                      /* start */
    board_systick(16000000u, hertz);
}

int16_t board_sample(void) { return (int16_t)(ADC1_DR & 0xfffu); }

void board_pin(int high) { GPIOA_BSRR = high ? 1u << 5 : 1u << 21; }
