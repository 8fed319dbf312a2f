/* node run_page.js FOLDER < steps.json: what the scripts of a page say without a browser, as JSON. */
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];
const asked = JSON.parse(fs.readFileSync(0, "utf8"));
for (const file of ["model.js", "network.js", "samples.js", "drawing.js"]) {
  vm.runInThisContext(fs.readFileSync(path.join(folder, file), "utf8"), file);
}

function tried(read) {
  try {
    return read();
  } catch (error) {
    return error.message;
  }
}

(async () => {
  const network = await QORNN_NETWORK.load(QORNN_MODEL);
  const found = { replay: network.replay(), states: [], outputs: [], raw: [], files: [], pixels: [], answers: [] };
  network.init();
  for (const numbers of asked.steps || []) {
    found.raw.push(network.step(numbers.map((number) => number ?? NaN), Boolean(asked.floats)));
    found.states.push(network.states());
    found.outputs.push(network.outputs());
  }
  for (const file of asked.files || []) {
    const data = fs.readFileSync(file);
    const buffer = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
    const table = () => (file.endsWith(".npy") ? QORNN_SAMPLES.npy(buffer) : QORNN_SAMPLES.csv(data.toString()));
    found.files.push(tried(() => QORNN_SAMPLES.sequences(table(), { channels: asked.channels, hold: asked.hold })));
  }
  if (asked.digits) found.digits = Array.from({ length: 10 }, (_, number) => QORNN_DRAWING.digit(number));
  for (const strokes of asked.drawings || []) {
    const { low, high, picture } = network.facts;
    const shares = QORNN_DRAWING.pixels(strokes, picture, asked.frame);
    found.pixels.push(Array.from(shares, (share) => Math.round(low + share * (high - low))));
    network.init();
    for (const at of picture.order) network.step([found.pixels[found.pixels.length - 1][at]], false);
    found.answers.push(QORNN_NETWORK.largest(network.outputs()));
  }
  console.log(JSON.stringify(found));
})();
