
static float page_floats[@name@_N_I];

EXPORT(floats) float *floats(void) { return page_floats; }
EXPORT(quantize) void quantize(void) { @name@_quantize(page_floats, page_raw); }
