/* Two models in one program, `one` and `two`: however their steps are ordered, every output is that of one run over a whole
   sequence (expected.h). Says "exact steps=N", N the outputs compared, or "differs" and what was being done. */
#include "expected.h"

#include <stddef.h>

#ifdef __AVR__
#include <avr/io.h>
static void say(const char *text) {
    for (; *text; text++) {
        GPIOR0 = (uint8_t)*text;
    }
}
#elif defined(EXAMPLE_SAY)
void EXAMPLE_SAY(const char *text);
#define say EXAMPLE_SAY
#else
#include <stdio.h>
#define say(text) (void)fputs(text, stdout)
#endif

/* For each model: a step with input t of sequence q, and whether the outputs are then as expected. */
#define MODEL(name)                                                                                  \
    static void name##_go(name##_state *s, unsigned q, unsigned t) {                                 \
        const int16_t *x = name##_inputs[q][t];                                                      \
        (void)name##_step(s, name##_ARGUMENT);                                                       \
    }                                                                                                \
    static int name##_as_expected(const name##_state *s, unsigned q, unsigned t) {                   \
        name##_y y[name##_N_O];                                                                      \
        name##_predict(s, y);                                                                        \
        for (unsigned i = 0; i < sizeof y; i++) { /* bits, of floats too */                          \
            if (((const unsigned char *)y)[i] != ((const unsigned char *)name##_outputs[q][t])[i]) { \
                return 0;                                                                            \
            }                                                                                        \
        }                                                                                            \
        return 1;                                                                                    \
    }                                                                                                \
    /* k calls of one step */                                                                        \
    static int name##_in_order(name##_state *s, unsigned q) {                                        \
        int exact = 1;                                                                               \
        name##_init(s);                                                                              \
        for (unsigned t = 0; t < STEPS; t++) {                                                       \
            name##_go(s, q, t);                                                                      \
            exact &= name##_as_expected(s, q, t);                                                    \
        }                                                                                            \
        return exact;                                                                                \
    }                                                                                                \
    /* a reset after `middle` steps of another sequence */                                           \
    static int name##_reset(name##_state *s, unsigned middle) {                                      \
        name##_init(s);                                                                              \
        for (unsigned t = 0; t < middle; t++) {                                                      \
            name##_go(s, 1, t);                                                                      \
        }                                                                                            \
        return name##_in_order(s, 0);                                                                \
    }                                                                                                \
    /* two instances in turn, the second of them late, and asked after every step of the other */    \
    static int name##_interleaved(name##_state *a, name##_state *b) {                                \
        int exact = 1;                                                                               \
        name##_init(a);                                                                              \
        name##_init(b);                                                                              \
        for (unsigned t = 0; t < STEPS + LATE; t++) {                                                \
            if (t < STEPS) {                                                                         \
                name##_go(a, 0, t);                                                                  \
            }                                                                                        \
            if (t >= LATE) {                                                                         \
                name##_go(b, 1, t - LATE);                                                           \
                exact &= name##_as_expected(b, 1, t - LATE);                                         \
            }                                                                                        \
            if (t < STEPS) {                                                                         \
                exact &= name##_as_expected(a, 0, t);                                                \
            }                                                                                        \
        }                                                                                            \
        return exact;                                                                                \
    }

MODEL(one)
MODEL(two)

static one_state one_a, one_b;
static two_state two_a, two_b;

static int models_in_turn(void) {
    int exact = 1;
    one_init(&one_a);
    two_init(&two_a);
    for (unsigned t = 0; t < STEPS; t++) {
        one_go(&one_a, 0, t);
        two_go(&two_a, 1, t);
        exact &= one_as_expected(&one_a, 0, t) && two_as_expected(&two_a, 1, t);
    }
    return exact;
}

#ifdef THREADS
#include <pthread.h>
enum { TURNS = 200 };

static void *first(void *exact) {
    static one_state s; /* each thread owns its state */
    for (int i = 0; i < TURNS; i++) {
        *(int *)exact &= one_in_order(&s, 0);
    }
    return NULL;
}

static void *second(void *exact) {
    static one_state s;
    for (int i = 0; i < TURNS; i++) {
        *(int *)exact &= one_in_order(&s, 1);
    }
    return NULL;
}

static int threads(void) {
    pthread_t a, b;
    int of_a = 1, of_b = 1;
    if (pthread_create(&a, NULL, first, &of_a) || pthread_create(&b, NULL, second, &of_b)) {
        return 0;
    }
    return !pthread_join(a, NULL) && !pthread_join(b, NULL) && of_a && of_b;
}
#else
static int threads(void) { return 1; }
#endif

static const char *wrong(void) {
    for (unsigned q = 0; q < 2; q++) {
        if (!one_in_order(&one_a, q) || !two_in_order(&two_a, q)) {
            return "in order";
        }
    }
    for (unsigned middle = 0; middle < STEPS; middle += 3) {
        if (!one_reset(&one_a, middle) || !two_reset(&two_a, middle)) {
            return "reset in the middle";
        }
    }
    if (!one_interleaved(&one_a, &one_b) || !two_interleaved(&two_a, &two_b)) {
        return "two instances";
    }
    if (!models_in_turn()) {
        return "two models";
    }
    return threads() ? NULL : "two threads";
}

int main(void) {
    const char *what = wrong();
    if (what) {
        say("differs: ");
        say(what);
        say("\n");
    } else {
        say("exact steps=1\n");
    }
#ifdef __AVR__
    (void)GPIOR1; /* nothing to take: the end */
#endif
    return what != NULL;
}
