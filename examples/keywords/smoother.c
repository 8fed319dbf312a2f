#include "smoother.h"

static void forget(smoother *s) {
    for (int i = 0; i < SMOOTHER_MOST; i++) {
        s->answers[i] = SMOOTHER_NONE;
    }
    s->at = 0;
}

void smoother_reset(smoother *s) {
    forget(s);
    s->wait = 0;
}

int smoother_init(smoother *s, uint8_t keywords, uint8_t window, uint8_t need, uint8_t quiet) {
    const int fits = need >= 1 && need <= window && window <= SMOOTHER_MOST;
    s->keywords = fits ? keywords : 0;
    s->window = fits ? window : 1;
    s->need = fits ? need : 1;
    s->quiet = quiet;
    smoother_reset(s);
    return fits ? 0 : -1;
}

int smoother_step(smoother *s, int answer) {
    if (s->wait > 0) {
        s->wait--;
        return SMOOTHER_NONE;
    }
    s->answers[s->at] = (int16_t)answer;
    s->at = (uint8_t)((s->at + 1) % s->window);
    if (answer < 0 || answer >= s->keywords) {
        return SMOOTHER_NONE;
    }
    int votes = 0;
    for (int i = 0; i < s->window; i++) {
        votes += s->answers[i] == answer;
    }
    if (votes < s->need) {
        return SMOOTHER_NONE;
    }
    forget(s);
    s->wait = s->quiet;
    return answer;
}
