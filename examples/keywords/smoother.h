/* From answers to alarms: a keyword is reported when it wins a majority of the last answers.

   A smoother keeps the last `window` answers. It reports keyword k when at least `need` of them are k, then forgets them
   and stays quiet for `quiet` answers, so that one word gives one alarm. Answers of `keywords` and above, such as
   unknown and silence, are never reported. All memory is the struct. */
#ifndef SMOOTHER_H
#define SMOOTHER_H

#include <stdint.h>

#define SMOOTHER_MOST 16 /* answers that it can keep */
#define SMOOTHER_NONE (-1)

typedef struct {
    int16_t answers[SMOOTHER_MOST];
    uint8_t keywords, window, need, quiet;
    uint8_t at;   /* where the next answer goes */
    uint8_t wait; /* answers until it may report again */
} smoother;

/* Returns 0; -1, and reports nothing ever, where not 1 <= need <= window <= SMOOTHER_MOST. */
int smoother_init(smoother *s, uint8_t keywords, uint8_t window, uint8_t need, uint8_t quiet);

/* Forget all answers, for example after the microphone was off. */
void smoother_reset(smoother *s);

/* Take one answer; returns the keyword to report, or SMOOTHER_NONE. */
int smoother_step(smoother *s, int answer);

#endif
