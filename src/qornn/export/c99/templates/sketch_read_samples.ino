
/* @name@_N_I raw samples, one of each channel in turn, in the integers that the network was trained on. */
static void read_samples(int16_t *x) {
    for (int i = 0; i < @name@_N_I; i++) {
        x[i] = (int16_t)analogRead(A0);
    }
}
