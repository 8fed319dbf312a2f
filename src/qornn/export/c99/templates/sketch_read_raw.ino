
/* The next sample of a channel, as an integer from @low@ to @high@; outside, the nearest limit counts. Here: the voltage at pin
   A0, A1, ... as a 10-bit converter gives it, 0 to 1023. That is right only if the network was trained on such integers;
   otherwise scale them here. Wait here so that samples come as often as in training.@missing@@units@ */
static int16_t read_sample(int channel) { return (int16_t)analogRead(A0 + channel); }
