
/* The next sample of a channel, in the unit of the training data. Here: volts at pin A0, A1, ... from a 10-bit converter
   with a reference of 5 V. That is right only if the network was trained on volts; otherwise convert to its unit here.
   Wait here so that samples come as often as in training. Samples outside the limits count as the nearest limit.@missing@@units@ */
static float read_sample(int channel) { return (float)analogRead(A0 + channel) * (5.0f / 1023.0f); }
