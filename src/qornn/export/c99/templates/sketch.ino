/* Streams samples through @name@ and prints its answer. Replace @stub_name@ by your sensor. */
#include <@name@.h>

static @name@_state state;
@sketch_stub@
void setup() {
    Serial.begin(115200);
    @name@_init(&state); /* again before every new sequence */
}

void loop() {
@sketch_step@@sketch_answer@
}
