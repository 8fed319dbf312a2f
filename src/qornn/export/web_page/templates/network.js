"use strict";
/* The network as WebAssembly: one step at a time, on the integers that a device reads. No page is needed here. */

var QORNN_NETWORK = (function () {
  const MISSING = -32768; // the raw integer of a sample that is not there

  function bytes(base64) {
    const text = atob(base64);
    return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  }

  /* Promise of a network: init(), step(numbers, asFloats), outputs(), states(), replay(). */
  async function load(model) {
    const { instance } = await WebAssembly.instantiate(bytes(model.wasm), {});
    const c = instance.exports;
    const facts = model.facts;
    const units = facts.states.reduce((sum, part) => sum + part.n, 0);

    function view(Kind, address, length) {
      return new Kind(c.memory.buffer, address, length);
    }

    function held(value) {
      if (facts.hold && (Number.isNaN(value) || value === MISSING)) return MISSING;
      return Math.max(facts.low, Math.min(facts.high, Math.round(value)));
    }

    return {
      facts: facts,
      init: () => c.init(),
      /* Numbers of one step: raw integers, or floats in the units of the training data. Returns the raw integers. */
      step(numbers, asFloats) {
        const raw = view(Int16Array, c.raw(), facts.inputs);
        if (asFloats) {
          view(Float32Array, c.floats(), facts.inputs).set(numbers);
          c.quantize();
        } else {
          raw.set(Array.from(numbers, held));
        }
        c.step();
        return Array.from(raw);
      },
      /* As the program gives them: integers or float32. */
      outputs: () => Array.from(view(facts.exact ? Int32Array : Float32Array, c.predict(), facts.outputs.length)),
      /* In the network's own units. */
      values(outputs) {
        const count = Math.max(1, c.count());
        return outputs.map((y) => (y * facts.scale) / count + facts.offset);
      },
      states: () => Array.from(view(Int32Array, c.states(), units)),
      /* The test vectors, step by step: { exact, text }. */
      replay() {
        const failed = c.replay();
        const letters = view(Uint8Array, c.said(), c.said_length());
        const text = String.fromCharCode.apply(null, letters).split("\n")[0];
        c.init();
        return { exact: failed === 0, text: text };
      },
    };
  }

  function largest(values) {
    return values.reduce((best, value, at) => (value > values[best] ? at : best), 0);
  }

  return { load: load, largest: largest };
})();
