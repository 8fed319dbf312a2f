
/* The next code, from 0 to @high@: a symbol such as a letter, not a voltage. This one only stands in for your source of
   codes. Any other code is refused and changes nothing. */
static int32_t read_code() { return (int32_t)analogRead(A0) % @name@_N_I; }
