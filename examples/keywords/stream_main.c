/* Frames of features from standard input, ten signed bytes each, without an end; a line per answer.

       stream WINDOW NEED QUIET < frames.bin

   A line is "FRAME ANSWER ALARM": the class of the last FRAMES frames, and the keyword to report, or -1. The network
   has learned words of FRAMES frames from their first frame on, and a stream does not say where a word begins. So COPIES
   states of the one network run side by side. Every EVERY frames the oldest has seen FRAMES frames: it gives its answer
   to the smoother and starts anew. All memory: the states, one window of frames and the smoother. */
#include "keywords.h"
#include "smoother.h"

#include <stdio.h>
#include <stdlib.h>

#define CHANNELS 10
#define WINDOW (keywords_N_I / CHANNELS) /* frames per step of the network */
#define FRAMES 49
#define EVERY 7
#define COPIES (FRAMES / EVERY)
#define KEYWORDS 10 /* classes before unknown and silence */

static keywords_state copies[COPIES];
static int16_t window[keywords_N_I]; /* the last frames, the newest at the end */
static smoother votes;

static void shift_in(const signed char *frame) {
    for (int i = 0; i < keywords_N_I - CHANNELS; i++) {
        window[i] = window[i + CHANNELS];
    }
    for (int c = 0; c < CHANNELS; c++) {
        window[keywords_N_I - CHANNELS + c] = frame[c];
    }
}

/* One more frame for every copy; the answer of the copy that has seen FRAMES of them, or SMOOTHER_NONE. */
static int take(const signed char *frame, long t) {
    int answer = SMOOTHER_NONE;
    shift_in(frame);
    for (int i = 0; i < COPIES && t >= (long)i * EVERY; i++) {
        const long age = (t - (long)i * EVERY) % FRAMES; /* frames it has seen before this one */
        if (age == 0) {
            keywords_init(&copies[i]);
        }
        if (age % WINDOW == WINDOW - 1) {
            (void)keywords_step(&copies[i], window);
        }
        if (age == FRAMES - 1) {
            answer = keywords_classify(&copies[i]);
        }
    }
    return answer;
}

static uint8_t number(const char *text) { return (uint8_t)strtol(text, NULL, 10); }

int main(int argc, char **argv) {
    signed char frame[CHANNELS];
    size_t found;
    long t = 0;
    if (argc != 4 || smoother_init(&votes, KEYWORDS, number(argv[1]), number(argv[2]), number(argv[3])) != 0) {
        fprintf(stderr, "usage: stream WINDOW NEED QUIET < frames.bin\n");
        return 2;
    }
    while ((found = fread(frame, 1, CHANNELS, stdin)) == CHANNELS) {
        const int answer = take(frame, t);
        if (answer != SMOOTHER_NONE) {
            printf("%ld %d %d\n", t, answer, smoother_step(&votes, answer));
        }
        t++;
    }
    fprintf(stderr, "frames=%ld states_bytes=%u smoother_bytes=%u\n", t, (unsigned)sizeof copies,
            (unsigned)sizeof votes);
    return found == 0 ? 0 : 1;
}
