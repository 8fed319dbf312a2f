"use strict";
/* The page: what is drawn or dropped goes through the network step by step, as fast as the reader likes. */

(function () {
  const part = (id) => document.getElementById(id);
  const facts = QORNN_MODEL.facts;
  const SECONDS = [16, 8, 3, 1, 0]; // of a whole sequence, by the speed's number
  const STRIP = 240; // samples of a drawn signal, at least
  const HISTORY = 160; // height in pixels

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function sized(canvas, width, height) {
    canvas.width = width;
    canvas.height = height;
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  /* An image whose pixels are read one after another. */
  function Picture(canvas, changed) {
    const { side, order, pen: width } = facts.picture;
    const pixels = new Float64Array(side * side).fill(facts.low);
    let cursor = { x: side >> 1, y: side >> 1 };
    let last = null;
    canvas.className = "picture";
    canvas.dataset.side = side;

    function show(at) {
      const pen = sized(canvas, side * 16, side * 16);
      pixels.forEach((value, i) => {
        const grey = Math.round((255 * (value - facts.low)) / (facts.high - facts.low));
        pen.fillStyle = "rgb(" + [grey, grey, grey].join(",") + ")";
        pen.fillRect((i % side) * 16, Math.floor(i / side) * 16, 16, 16);
      });
      pen.lineWidth = 3;
      if (document.activeElement === canvas) {
        pen.strokeStyle = "#4db6ac";
        pen.strokeRect(cursor.x * 16 + 1.5, cursor.y * 16 + 1.5, 13, 13);
      }
      if (at !== undefined && at < order.length) {
        pen.strokeStyle = "#ff9800";
        pen.strokeRect((order[at] % side) * 16 + 1.5, Math.floor(order[at] / side) * 16 + 1.5, 13, 13);
      }
    }

    /* A round pen with a soft edge of one pixel; x and y count pixels. */
    function dot(x, y) {
      for (let i = 0; i < pixels.length; i++) {
        const far = Math.hypot((i % side) + 0.5 - x, Math.floor(i / side) + 0.5 - y);
        const ink = Math.max(0, Math.min(1, width / 2 + 0.5 - far));
        pixels[i] = Math.max(pixels[i], Math.round(facts.low + ink * (facts.high - facts.low)));
      }
    }

    function place(event) {
      const box = canvas.getBoundingClientRect();
      return { x: ((event.clientX - box.left) / box.width) * side, y: ((event.clientY - box.top) / box.height) * side };
    }

    function stroke(to) {
      const from = last || to;
      const steps = Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) * 4) + 1;
      for (let s = 1; s <= steps; s++) {
        dot(from.x + ((to.x - from.x) * s) / steps, from.y + ((to.y - from.y) * s) / steps);
      }
      last = to;
      show();
    }

    /* The centre of all ink in the middle, as the images of the data have it. */
    function centre() {
      let [ink, x, y] = [0, 0, 0];
      pixels.forEach((value, i) => {
        ink += value - facts.low;
        x += (value - facts.low) * (i % side);
        y += (value - facts.low) * Math.floor(i / side);
      });
      if (!ink) return;
      const right = Math.round((side - 1) / 2 - x / ink);
      const down = Math.round((side - 1) / 2 - y / ink);
      const before = pixels.slice();
      pixels.forEach((_, i) => {
        const column = (i % side) - right;
        const row = Math.floor(i / side) - down;
        const inside = column >= 0 && column < side && row >= 0 && row < side;
        pixels[i] = inside ? before[row * side + column] : facts.low;
      });
    }

    canvas.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      canvas.focus();
      canvas.setPointerCapture(event.pointerId);
      changed(false);
      last = null;
      stroke(place(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (last) stroke(place(event));
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => {
        if (last) {
          last = null;
          changed(true);
        }
      });
    }
    canvas.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (way) {
        cursor = { x: (cursor.x + way[0] + side) % side, y: (cursor.y + way[1] + side) % side };
      } else if (event.key === " ") {
        changed(false);
        dot(cursor.x + 0.5, cursor.y + 0.5);
      } else if (event.key === "Enter") {
        changed(true);
      } else {
        return;
      }
      event.preventDefault();
      show();
    });
    canvas.addEventListener("focus", () => show());
    canvas.addEventListener("blur", () => show());

    return {
      help: "Draw with a finger or the mouse. By keyboard: arrows move, space draws, Enter runs. A file holds images of " +
        side + " × " + side + " numbers in " + facts.low + ".." + facts.high + ", row by row.",
      centres: true,
      asFloats: () => false,
      clear: () => pixels.fill(facts.low),
      read: (table) => QORNN_SAMPLES.images(table, side),
      take: (image) => pixels.set(image),
      prepare() {
        if (part("centre").checked) centre();
      },
      steps: () => order.map((pixel) => [pixels[pixel]]),
      show: show,
    };
  }

  /* A signal over time, one line per channel. */
  function Strip(canvas, changed) {
    const window_ = facts.inputs / facts.channels;
    const empty = () => Array.from({ length: Math.ceil(STRIP / window_) * window_ }, () => Array(facts.channels).fill(0));
    let rows = empty();
    let drawn = true; // by hand, in raw integers
    let cursor = 0;
    let last = null;

    function range() {
      if (drawn) return [facts.low, facts.high];
      let [low, high] = [Infinity, -Infinity];
      rows.forEach((row) => row.forEach((value) => { low = Math.min(low, value); high = Math.max(high, value); }));
      return low < high ? [low, high] : [low - 1, high + 1];
    }

    function show(at) {
      const width = Math.max(300, canvas.clientWidth);
      const pen = sized(canvas, width, HISTORY);
      const [low, high] = range();
      for (let c = 0; c < facts.channels; c++) {
        pen.strokeStyle = "hsl(" + (175 + (360 * c) / facts.channels) + " 70% 40%)";
        pen.lineWidth = 1.5;
        pen.beginPath();
        rows.forEach((row, t) => {
          pen.lineTo((t / Math.max(1, rows.length - 1)) * width, 4 + (1 - (row[c] - low) / (high - low)) * (HISTORY - 8));
        });
        pen.stroke();
      }
      const mark = at === undefined ? (document.activeElement === canvas ? cursor : null) : at * window_;
      if (mark !== null) {
        pen.fillStyle = "#e65100";
        pen.fillRect((mark / rows.length) * width, 0, 2, HISTORY);
      }
    }

    /* One value from a time to another, of the first channel. */
    function put(t, value) {
      if (!drawn) {
        rows = empty();
        drawn = true;
        last = null;
      }
      const from = last === null ? t : last;
      for (let s = Math.min(from, t); s <= Math.max(from, t); s++) rows[s][0] = value;
      last = t;
    }

    function point(event) {
      const box = canvas.getBoundingClientRect();
      const t = Math.floor(((event.clientX - box.left) / box.width) * rows.length);
      const height = Math.max(0, Math.min(1, 1 - (event.clientY - box.top) / box.height));
      put(Math.max(0, Math.min(rows.length - 1, t)), Math.round(facts.low + height * (facts.high - facts.low)));
      show();
    }

    let down = false;
    canvas.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      canvas.focus();
      canvas.setPointerCapture(event.pointerId);
      changed(false);
      last = null;
      down = true;
      point(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (down) point(event);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => {
        if (down) changed(true);
        down = false;
      });
    }
    canvas.addEventListener("keydown", (event) => {
      const grain = Math.max(1, Math.round((facts.high - facts.low) / 20));
      const up = { ArrowUp: grain, ArrowDown: -grain }[event.key];
      const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (up) {
        changed(false);
        last = null;
        const now = drawn ? rows[cursor][0] : 0;
        put(cursor, Math.max(facts.low, Math.min(facts.high, now + up)));
      } else if (along) {
        cursor = (cursor + along + rows.length) % rows.length;
      } else if (event.key === "Enter") {
        changed(true);
      } else {
        return;
      }
      event.preventDefault();
      show();
    });
    canvas.addEventListener("focus", () => show());
    canvas.addEventListener("blur", () => show());

    return {
      help: "Draw a signal" + (facts.channels > 1 ? " of the first channel" : "") + " from left to right, or open a file with " +
        "one row per sample and one column per channel (" + facts.channels + "). By keyboard: left and right move, up and " +
        "down change a sample, Enter runs.",
      centres: false,
      asFloats: () => facts.floats && !drawn && part("units").value === "floats",
      clear() {
        rows = empty();
        drawn = true;
        cursor = 0;
      },
      read: (table) => QORNN_SAMPLES.sequences(table, facts.channels),
      take(sequence) {
        rows = sequence;
        drawn = false;
        cursor = 0;
      },
      prepare() {},
      steps() {
        const found = [];
        for (let t = 0; t + window_ <= rows.length; t += window_) found.push(rows.slice(t, t + window_).flat());
        return found;
      },
      show: show,
    };
  }

  function showStates(states) {
    const columns = Math.ceil(Math.sqrt(states.length * 3));
    const lines = Math.ceil(states.length / columns);
    const pen = sized(part("states"), columns * 12, lines * 12);
    let j = 0;
    for (const kept of facts.states) {
      for (let i = 0; i < kept.n; i++, j++) {
        const strength = Math.min(1, Math.sqrt(Math.abs(states[j]) / kept.top));
        pen.fillStyle = "hsl(" + (states[j] < 0 ? 210 : 30) + " 90% 50% / " + strength + ")";
        pen.fillRect((j % columns) * 12, Math.floor(j / columns) * 12, 11, 11);
      }
    }
  }

  /* One line per output. */
  function showHistory(history, length) {
    const width = Math.max(300, part("history").clientWidth);
    const pen = sized(part("history"), width, HISTORY);
    const all = history.flat();
    const low = all.reduce((a, b) => Math.min(a, b), Infinity);
    const high = all.reduce((a, b) => Math.max(a, b), -Infinity);
    if (!history.length) return;
    const best = QORNN_NETWORK.largest(history[history.length - 1]);
    facts.outputs.forEach((_, o) => {
      pen.strokeStyle = o === best ? colour("--accent") : colour("--edge");
      pen.lineWidth = o === best ? 3 : 1;
      pen.beginPath();
      history.forEach((values, t) => {
        const y = 4 + (1 - (values[o] - low) / (high - low || 1)) * (HISTORY - 8);
        pen.lineTo((t / Math.max(1, length - 1)) * width, y);
      });
      pen.stroke();
    });
  }

  const table = part("outputs").tBodies[0];
  const bars = facts.outputs.map((label) => {
    const row = table.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = label;
    row.append(head);
    const bar = document.createElement("div");
    const cell = row.insertCell();
    cell.className = "bar";
    cell.append(bar);
    const number = row.insertCell();
    number.className = "number";
    return { row: row, bar: bar, number: number };
  });

  function showOutputs(outputs, values, t, length) {
    const low = Math.min(...values);
    const high = Math.max(...values);
    const best = QORNN_NETWORK.largest(outputs);
    bars.forEach((each, o) => {
      each.bar.style.width = (100 * (values[o] - low)) / (high - low || 1) + "%";
      each.number.textContent = facts.exact ? outputs[o] : outputs[o].toFixed(3);
      each.row.className = o === best && outputs.length > 1 ? "best" : "";
    });
    const answer = outputs.length > 1 ? facts.outputs[best] : values[0].toPrecision(5);
    if (part("answer").textContent !== answer) part("answer").textContent = answer;
    part("progress").textContent = "after " + t + " of " + length + " steps";
  }

  function say(text) {
    part("message").textContent = text;
  }

  function start(network) {
    let running = 0; // number of the run that may go on
    let found = []; // of a file
    const input = (facts.picture ? Picture : Strip)(part("input"), (whole) => (whole ? run() : stop()));

    function stop() {
      running++;
      document.body.dataset.running = "no";
    }

    function reset() {
      stop();
      network.init();
      part("answer").textContent = "–";
      part("progress").textContent = "";
      showStates(network.states());
      showHistory([], 1);
      input.show();
    }

    function run() {
      stop();
      say("");
      input.prepare();
      const mine = running;
      const steps = input.steps();
      const floats = input.asFloats();
      const history = [];
      const seconds = SECONDS[Number(part("speed").value)];
      let t = 0;
      let began = null;
      network.init();
      document.body.dataset.running = "yes";

      function frame(now) {
        if (mine !== running) return;
        began = began === null ? now : began;
        const due = seconds ? Math.ceil(((now - began) / 1000 / seconds) * steps.length) + 1 : steps.length;
        let outputs = null;
        for (; t < Math.min(due, steps.length); t++) {
          network.step(steps[t], floats);
          outputs = network.outputs();
          history.push(network.values(outputs));
        }
        if (outputs) {
          showOutputs(outputs, history[t - 1], t, steps.length);
          showStates(network.states());
          showHistory(history, steps.length);
          input.show(t < steps.length ? t : undefined);
        }
        if (t < steps.length) {
          requestAnimationFrame(frame);
        } else {
          document.body.dataset.running = "no";
        }
      }
      requestAnimationFrame(frame);
    }

    async function open(file) {
      try {
        const numpy = file.name.toLowerCase().endsWith(".npy");
        const read = numpy ? QORNN_SAMPLES.npy(await file.arrayBuffer()) : QORNN_SAMPLES.csv(await file.text());
        found = input.read(read);
      } catch (error) {
        say(file.name + ": " + error.message);
        return;
      }
      part("which").max = found.length;
      part("which").value = 1;
      part("which-label").hidden = found.length < 2;
      choose();
    }

    function choose() {
      const number = Math.max(1, Math.min(found.length, Number(part("which").value) || 1));
      if (!found.length) return;
      input.take(found[number - 1]);
      part("centre").checked = false; // images of a file are read as they are
      run();
    }

    part("input-help").textContent = input.help;
    part("centre-label").hidden = !input.centres;
    part("units-label").hidden = !facts.floats || Boolean(facts.picture);
    part("run").addEventListener("click", run);
    part("clear").addEventListener("click", () => {
      input.clear();
      part("centre").checked = true;
      reset();
    });
    part("file").addEventListener("change", (event) => event.target.files[0] && open(event.target.files[0]));
    part("which").addEventListener("change", choose);
    part("units").addEventListener("change", () => found.length && run());
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
    });
    reset();
  }

  facts.lines.forEach((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    part("facts").append(item);
  });
  QORNN_NETWORK.load(QORNN_MODEL).then(
    (network) => {
      const check = network.replay();
      const steps = /steps=(\d+)/.exec(check.text);
      part("check").className = check.exact ? "exact" : "differs";
      part("check").textContent = check.exact
        ? "Exact: " + steps[1] + " steps of the test vectors, bit for bit."
        : "Not exact: " + check.text;
      start(network);
    },
    (error) => {
      part("check").className = "differs";
      part("check").textContent = "This browser does not run the network: " + error.message;
    }
  );
})();
