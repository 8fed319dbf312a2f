/* Samples from standard input, one per line: six whole numbers as the sensors give them; after each, the class so far.

       stream RESET < samples.txt

   RESET: samples after which a new sequence begins; 0: one sequence for ever. The network steps when WINDOW samples are
   there, so that the answer changes with every WINDOW-th sample. All memory there is: one state and one window. */
#include "har.h"

#include <stdio.h>
#include <stdlib.h>

#define CHANNELS 6
#define WINDOW (har_N_I / CHANNELS)

static har_state state;
static int16_t window[har_N_I];

/* 1 for a whole sample, 0 at the end of the signal, -1 for anything else. */
static int read_sample(int16_t *sample) {
    for (int c = 0; c < CHANNELS; c++) {
        long value;
        const int found = scanf("%ld", &value);
        if (found != 1 || value < INT16_MIN || value > INT16_MAX) {
            return found == EOF && c == 0 ? 0 : -1;
        }
        sample[c] = (int16_t)value;
    }
    return 1;
}

static int begin(void) {
    har_init(&state);
    return har_classify(&state);
}

int main(int argc, char **argv) {
    const long reset = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    long samples = 0;
    int filled = 0, found, answer = begin();
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    while ((found = read_sample(window + filled * CHANNELS)) == 1) {
        samples++;
        filled++;
        if (filled == WINDOW) {
            (void)har_step(&state, window);
            answer = har_classify(&state);
            filled = 0;
        }
        printf("%d\n", answer);
        if (reset > 0 && samples % reset == 0) {
            answer = begin();
            filled = 0;
        }
    }
    fprintf(stderr, "samples=%ld state_bytes=%u window_bytes=%u\n", samples, (unsigned)sizeof state,
            (unsigned)sizeof window);
    return found == 0 ? 0 : 1;
}
