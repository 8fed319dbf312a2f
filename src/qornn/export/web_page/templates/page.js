"use strict";
/* The page: what is drawn or dropped goes through the network step by step, as fast as the reader likes. */

(function () {
  const { colour, line, short, sized, write } = QORNN_CANVAS;
  const part = (id) => document.getElementById(id);
  const facts = QORNN_MODEL.facts;
  const SECONDS = [16, 8, 3, 1, 0]; // of a whole sequence, by the speed's number
  const [LINES, BAND, CELL] = [140, 22, 14]; // pixels: the lines of the history, the answers below them, a state
  const classes = facts.outputs.length > 1;

  function showStates(states) {
    const width = Math.max(280, part("states").parentElement.clientWidth);
    const columns = Math.max(1, Math.min(states.length, Math.floor(width / CELL)));
    const pen = sized(part("states"), columns * CELL, Math.ceil(states.length / columns) * CELL);
    part("states").style.maxWidth = columns * CELL + "px";
    let j = 0;
    for (const kept of facts.states) {
      for (let i = 0; i < kept.n; i++, j++) {
        const [x, y] = [(j % columns) * CELL, Math.floor(j / columns) * CELL];
        pen.fillStyle = colour("--cell");
        pen.fillRect(x, y, CELL - 1, CELL - 1);
        pen.globalAlpha = Math.min(1, Math.sqrt(Math.abs(states[j]) / kept.top));
        pen.fillStyle = colour(states[j] < 0 ? "--negative" : "--positive");
        pen.fillRect(x, y, CELL - 1, CELL - 1);
        pen.globalAlpha = 1;
      }
    }
  }

  /* One line per output, and below them the answer of every step. */
  function showHistory(history, length) {
    const width = Math.max(280, part("history").clientWidth);
    const pen = sized(part("history"), width, LINES + (classes ? BAND : 0));
    if (!history.length) return;
    let [low, high] = [Infinity, -Infinity];
    for (const values of history) for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
    const best = QORNN_NETWORK.largest(history[history.length - 1]);
    const x = (t) => (t / Math.max(1, length - 1)) * width;
    facts.outputs.forEach((_, o) => {
      pen.strokeStyle = o === best ? colour("--accent") : colour("--edge");
      pen.lineWidth = o === best ? 3 : 1;
      line(pen, history.length, x, (t) => 6 + (1 - (history[t][o] - low) / (high - low || 1)) * (LINES - 12));
    });
    write(pen, short(high), 4, 13);
    write(pen, short(low), 4, LINES - 4);
    if (classes) showAnswers(pen, history.map(QORNN_NETWORK.largest), (t) => (t / length) * width);
  }

  /* A bar per run of equal answers, with its name where there is room. */
  function showAnswers(pen, answers, x) {
    for (let from = 0, to; from < answers.length; from = to) {
      for (to = from; to < answers.length && answers[to] === answers[from]; ) to++;
      const [left, wide] = [x(from), x(to) - x(from)];
      pen.fillStyle = colour(answers[from] === answers[answers.length - 1] ? "--bar" : "--cell");
      pen.fillRect(left, LINES, Math.max(0.5, wide - 1), BAND);
      const name = facts.outputs[answers[from]];
      pen.fillStyle = colour("--text");
      if (pen.measureText(name).width + 6 < wide) pen.fillText(name, left + 4, LINES + 15);
    }
  }

  const bars = facts.outputs.map((label) => {
    const row = part("outputs").tBodies[0].insertRow();
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
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const best = QORNN_NETWORK.largest(outputs);
    bars.forEach((each, o) => {
      each.bar.style.width = (100 * (values[o] - low)) / (high - low || 1) + "%";
      each.number.textContent = facts.exact ? outputs[o] : outputs[o].toFixed(3);
      each.row.className = o === best ? "best" : "";
    });
    const answer = classes ? facts.outputs[best] : String(Number(values[0].toPrecision(5)));
    if (part("answer").textContent !== answer) part("answer").textContent = answer;
    part("progress").textContent = "after " + t + " of " + length + " steps";
  }

  function hideOutputs() {
    part("answer").textContent = "–";
    part("progress").textContent = part("said").textContent = "";
    for (const each of bars) {
      each.bar.style.width = "0";
      each.row.className = each.number.textContent = "";
    }
  }

  function say(text) {
    part("message").textContent = text;
  }

  function start(network) {
    let running = 0; // number of the run that may go on
    let [history, length] = [[], 1]; // outputs of the run so far, and its steps
    let found = []; // of a file
    const change = (whole) => (whole ? run() : stop());
    const input = facts.picture
      ? QORNN_PICTURE(part("input"), part("pixels"), facts, change)
      : QORNN_STRIP(part("input"), facts, change);

    function stop() {
      running++;
      document.body.dataset.running = "no";
      part("said").textContent = "";
    }

    /* All canvases, as they are now: after a step, and where the window or the colours change. */
    function paint() {
      showStates(network.states());
      showHistory(history, length);
      input.show(document.body.dataset.running === "yes" && history.length < length ? history.length : undefined);
    }

    function reset() {
      stop();
      say("");
      network.init();
      hideOutputs();
      [history, length] = [[], 1];
      paint();
    }

    function run() {
      stop();
      say("");
      const mine = running;
      const steps = input.steps();
      const floats = input.asFloats();
      const seconds = SECONDS[Number(part("speed").value)];
      let t = 0;
      let began = null;
      network.init();
      [history, length] = [[], steps.length];
      if (!steps.length) {
        hideOutputs();
        paint();
        say("The sequence is too short: one step reads " + facts.window + " samples.");
        return;
      }
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
          paint();
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
        found = [];
        part("which-label").hidden = true;
        reset();
        say(file.name + ": " + error.message);
        return;
      }
      part("which").max = found.length;
      part("which").value = 1;
      part("which-count").textContent = "of " + found.length;
      part("which-label").hidden = found.length < 2;
      choose();
    }

    function choose() {
      if (!found.length) return;
      const number = Math.max(1, Math.min(found.length, Math.round(Number(part("which").value)) || 1));
      part("which").value = number;
      input.take(found[number - 1]);
      run();
      const label = found[number - 1].label;
      part("said").textContent = label === undefined ? "" : "The file says: " + label;
    }

    part("input-help").textContent = input.help;
    part("file-help").textContent = input.fileHelp;
    for (const sample of input.samples) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = sample.label;
      button.addEventListener("click", () => {
        sample.take();
        run();
      });
      part("samples").append(button);
    }
    part("samples").hidden = !input.samples.length;
    part("samples").classList.toggle("digits", input.samples.length === 10);
    part("pixels-figure").hidden = !facts.picture;
    part("outputs").hidden = !classes;
    part("frame-label").hidden = !input.frame;
    part("units-label").hidden = !facts.floats || Boolean(facts.picture);
    part("run").addEventListener("click", run);
    part("clear").addEventListener("click", () => {
      input.clear();
      reset();
    });
    part("frame").addEventListener("change", (event) => {
      input.frame(event.target.checked);
      run();
    });
    part("file").addEventListener("change", (event) => event.target.files[0] && open(event.target.files[0]));
    part("which").addEventListener("change", choose);
    part("units").addEventListener("change", () => found.length && run());
    window.addEventListener("resize", paint);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
    });
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) part("speed").value = SECONDS.length - 1;
    reset();
  }

  facts.lines.forEach((text) => {
    const item = document.createElement("li");
    item.textContent = text;
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
