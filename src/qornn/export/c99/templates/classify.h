
/* The largest output, the first where several are equal. */
int @name@_classify(const @name@_state *s);
