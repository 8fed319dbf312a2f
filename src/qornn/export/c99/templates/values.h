
/* The same in the network's own units: the outputs divided by T, once, in float32. */
void @name@_values(const @name@_state *s, float *values);
