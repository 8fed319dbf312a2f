/* From many quick answers to one steady decision: a leaky vote, in plain C, all memory in the struct.

   Every class has a share of 65535. At each answer every share loses 1/2^leak of itself, and the answered class gains what
   all lost. So a share is an average over about 2^leak answers, old ones counting less. A class is decided when its share
   reaches `enough`; above half of 65535 that is never more than one. The decision then stays until another class gets there.

       vote v;
       vote_init(&v, net_N_O, 3, 40000);
       for (;;) { ... net_step(&s, x); decision = vote_step(&v, net_classify(&s)); } */
#ifndef VOTE_H
#define VOTE_H

#include <stdint.h>

#define VOTE_MOST 32 /* classes there is room for */
#define VOTE_NONE (-1)

typedef struct {
    uint16_t shares[VOTE_MOST];
    uint16_t enough;
    uint8_t classes, leak;
    int8_t decided;
} vote;

/* Forget everything, as at the start of a signal. */
static inline void vote_reset(vote *v) {
    for (uint8_t i = 0; i < VOTE_MOST; i++) {
        v->shares[i] = 0;
    }
    v->decided = VOTE_NONE;
}

/* Returns 0; -1 where not 1 <= classes <= VOTE_MOST, leak <= 8 and enough > 32767: such a vote decides nothing. */
static inline int vote_init(vote *v, int classes, uint8_t leak, uint16_t enough) {
    const int fits = classes >= 1 && classes <= VOTE_MOST && leak <= 8 && enough > 32767;
    v->classes = (uint8_t)(fits ? classes : 0);
    v->leak = leak;
    v->enough = enough;
    vote_reset(v);
    return fits ? 0 : -1;
}

/* Take one answer; returns the decision, or VOTE_NONE before the first. Answers that are no class only leak. */
static inline int vote_step(vote *v, int answer) {
    for (uint8_t i = 0; i < v->classes; i++) {
        const uint16_t share = v->shares[i];
        const uint16_t missing = (uint16_t)(65535u - share);
        v->shares[i] = (uint16_t)(answer == i ? share + (missing >> v->leak) : share - (share >> v->leak));
        if (v->shares[i] >= v->enough) {
            v->decided = (int8_t)i;
        }
    }
    return v->decided;
}

#endif
