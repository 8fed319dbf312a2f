/* A sampling loop: a timer takes samples, the network steps whenever a whole step is there, and a pin is high meanwhile.

   The pin shows the time of a step on an oscilloscope. The network is a classifier, exported with --name net. */
#include "board.h"
#include "net.h"

#ifndef SAMPLES_PER_SECOND
#define SAMPLES_PER_SECOND 500u
#endif

/* Two halves in turn, each a whole step: one is filled while the network reads the other. They lie one after another and
   begin at a word, so a DMA channel with an interrupt per half can take the place of board_tick. */
static int16_t samples[2][net_N_I] __attribute__((aligned(4)));
static volatile uint32_t filled; /* halves since the start */

/* For a debugger, or whatever you send them to. */
volatile int32_t board_answer = -1;
volatile uint32_t board_answers;
volatile uint32_t board_late; /* steps that were lost: the network takes longer than its samples */

/* From the timer's interrupt. Several channels are sampled one after another. */
void board_tick(void) {
    static unsigned at;
    samples[filled & 1u][at] = board_sample();
    if (++at == net_N_I) {
        at = 0;
        filled = filled + 1u;
    }
}

/* Sleeps until the next interrupt. Interrupts are held back, so none comes between the question and the sleep. */
__attribute__((noinline)) static void board_wait(void) { __asm__ volatile("wfi" : : : "memory"); }

static void wait_for(uint32_t done) {
    for (;;) {
        __asm__ volatile("cpsid i" : : : "memory");
        if (filled != done) {
            break;
        }
        board_wait();
        __asm__ volatile("cpsie i\n\tisb" : : : "memory");
    }
    __asm__ volatile("cpsie i" : : : "memory");
}

int main(void) {
    static net_state state;
    net_init(&state); /* again wherever a new signal begins */
    board_start(SAMPLES_PER_SECOND);
    for (uint32_t done = 0;; done++) {
        wait_for(done);
        board_pin(1);
        (void)net_step(&state, samples[done & 1u]);
        const int answer = net_classify(&state);
        board_pin(0);
        const uint32_t now = filled;
        if (now - done > 1u) { /* this half may have been written over meanwhile */
            board_late = board_late + (now - done - 1u);
            done = now - 1u;
        }
        board_answer = answer;
        board_answers = board_answers + 1u;
    }
}
