/* A classifier on a stream: samples in, a steady decision out, in constant memory and without allocation.

       qornn export FILE --to c -o net_c --name net
       cc -std=c99 -O2 -Inet_c examples/stream/stream.c net_c/net.c net_c/qornn_*.c -o stream
       ./stream < samples.bin        # int16 in this machine's byte order, net_N_I per step

   A line per step: the answer of this step, and the decision of the vote. */
#include "net.h"
#include "vote.h"

#include <stdio.h>

int main(void) {
    static net_state state;
    static vote votes;
    int16_t samples[net_N_I];
    net_init(&state); /* again wherever a new signal begins */
    if (vote_init(&votes, net_N_O, 3, 40000) != 0) {
        return 2;
    }
    while (fread(samples, sizeof samples, 1, stdin) == 1) {
        (void)net_step(&state, samples);
        const int answer = net_classify(&state);
        printf("%d %d\n", answer, vote_step(&votes, answer));
    }
    return 0;
}
