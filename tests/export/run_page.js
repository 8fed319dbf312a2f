/* node run_page.js FOLDER < steps.json: what the scripts of a page say without a browser, as JSON. */
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];
const asked = JSON.parse(fs.readFileSync(0, "utf8"));
for (const file of ["model.js", "network.js", "samples.js"]) {
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
  const found = { replay: network.replay(), states: [], outputs: [], raw: [], files: [] };
  network.init();
  for (const numbers of asked.steps || []) {
    found.raw.push(network.step(numbers, Boolean(asked.floats)));
    found.states.push(network.states());
    found.outputs.push(network.outputs());
  }
  for (const file of asked.files || []) {
    const data = fs.readFileSync(file);
    const buffer = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
    const table = () => (file.endsWith(".npy") ? QORNN_SAMPLES.npy(buffer) : QORNN_SAMPLES.csv(data.toString()));
    found.files.push(tried(() => QORNN_SAMPLES.sequences(table(), asked.channels)));
  }
  console.log(JSON.stringify(found));
})();
