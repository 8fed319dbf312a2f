/* Feeds samples to @name@ and prints its answers. Replace @sketch_source@ by your own. */
#include <@name@.h>
@sketch_begin@
static @name@_state state;
@sketch_read@
void setup() {
    Serial.begin(115200);
    @name@_init(&state); /* @sketch_init@ */
}

void loop() {
@sketch_step@@sketch_answer@}
