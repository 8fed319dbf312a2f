
/* The next code, from 0 on: any other is refused and changes nothing. */
static int32_t read_code() { return (int32_t)analogRead(A0) % @name@_N_I; }
