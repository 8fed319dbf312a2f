"use strict";
/* A signal over time: one lane per channel, which one draws or opens. */

var QORNN_STRIP = (function () {
  const { colour, keyed, line, pointer, short, sized, write } = QORNN_CANVAS;
  const LENGTH = 240; // samples of a drawn signal, at least
  const WAVES = 6; // periods of a sample signal
  const [TALL, HIGHEST] = [160, 480]; // pixels of a single lane, and of all lanes where these are many

  return function (canvas, facts, changed) {
    const { channels, window: window_ } = facts;
    const ranges = facts.ranges.map(([low, high]) => (low < high ? [low, high] : [low - 1, high + 1])); // constant channels
    const height = Math.max(TALL, Math.min(HIGHEST, channels * 90));
    const lane = height / channels;
    const rest = ranges.map(([low, high]) => value((low + high) / 2));
    const empty = () => Array.from({ length: Math.ceil(LENGTH / window_) * window_ }, () => [...rest]);
    let rows = empty();
    let drawn = true; // in units of the training data, or in raw integers where there are no others
    let cursor = 0;
    let channel = 0;
    let last = null; // [time, value] of the stroke

    function value(wanted) {
      return facts.floats ? wanted : Math.round(wanted);
    }

    function range(c) {
      if (drawn) return ranges[c];
      const known = rows.map((row) => row[c]).filter(Number.isFinite);
      const low = known.reduce((a, b) => Math.min(a, b), Infinity);
      const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
      if (low < high) return [low, high];
      return Number.isFinite(low) ? [low - 1, low + 1] : ranges[c];
    }

    function showLane(pen, c, width) {
      const [low, high] = range(c);
      const top = c * lane;
      const room = Math.min(8, lane / 4); // above and below
      const x = (t) => (t / Math.max(1, rows.length - 1)) * width;
      pen.strokeStyle = colour("--accent");
      pen.lineWidth = 1.5;
      line(pen, rows.length, x, (t) => top + room + (1 - (rows[t][c] - low) / (high - low)) * (lane - 2 * room));
      if (c) {
        pen.fillStyle = colour("--edge");
        pen.fillRect(0, top, width, 1);
      }
      if (lane < 16) return;
      const name = channels > 1 ? "channel " + (c + 1) + (lane < 44 ? "" : ": ") : "";
      write(pen, name + (lane < 44 ? "" : short(high)), 4, top + 13);
      if (lane >= 44) write(pen, short(low), 4, top + lane - 4);
    }

    function show(at) {
      const width = Math.max(280, canvas.clientWidth);
      const pen = sized(canvas, width, height);
      for (let c = 0; c < channels; c++) showLane(pen, c, width);
      const mark = at === undefined ? (keyed(canvas) ? cursor : null) : at * window_;
      if (mark === null) return;
      pen.fillStyle = colour("--mark");
      const one = at === undefined; // the cursor is in one lane, what is being read in all
      pen.fillRect((mark / rows.length) * width, one ? channel * lane : 0, 2, one ? lane : height);
    }

    /* A line from the last point of the stroke to this one. */
    function put(t, wanted) {
      if (!drawn) clear();
      const [from, before] = last === null ? [t, wanted] : last;
      const step = Math.sign(t - from) || 1;
      for (let s = from; s !== t + step; s += step) {
        rows[s][channel] = value(t === from ? wanted : before + ((wanted - before) * (s - from)) / (t - from));
      }
      last = [t, wanted];
    }

    function point([x, y]) {
      const t = Math.max(0, Math.min(rows.length - 1, Math.floor(x * rows.length)));
      const share = Math.max(0, Math.min(1, 1 - (y * height - channel * lane) / lane));
      const [low, high] = ranges[channel];
      put(t, low + share * (high - low));
      show();
    }

    function clear() {
      [rows, drawn, cursor, last] = [empty(), true, 0, null];
    }

    /* A sample signal: shape(phase) is in −1..1, and every channel is a little late. */
    function wave(label, shape) {
      return {
        label: label,
        take() {
          clear();
          rows.forEach((row, t) =>
            ranges.forEach(([low, high], c) => {
              const level = shape((WAVES * t) / rows.length + c / channels);
              row[c] = value((low + high) / 2 + (level * (high - low)) / 4);
            })
          );
        },
      };
    }

    pointer(
      canvas,
      (place) => {
        changed(false);
        if (!drawn) clear();
        last = null;
        channel = Math.max(0, Math.min(channels - 1, Math.floor(place[1] * channels)));
        point(place);
      },
      point,
      () => changed(true)
    );
    canvas.addEventListener("keydown", (event) => {
      const [low, high] = ranges[channel];
      const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const other = { PageUp: -1, PageDown: 1 }[event.key];
      if (up) {
        changed(false);
        if (!drawn) clear();
        last = null;
        const grain = value(Math.max((high - low) / 20, facts.floats ? 0 : 1));
        put(cursor, Math.max(low, Math.min(high, rows[cursor][channel] + up * grain)));
      } else if (along) {
        cursor = (cursor + along + rows.length) % rows.length;
      } else if (other && channels > 1) {
        channel = (channel + other + channels) % channels;
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

    const several = channels > 1;
    return {
      help: "Draw a signal from left to right" + (several ? ", one lane per channel" : "") + ", or choose one. By keyboard: left " +
        "and right move, up and down change a sample, " + (several ? "page up and page down change the channel, " : "") +
        "Enter runs.",
      fileHelp: "One row per sample" + (several ? " and " + channels + " columns, one per channel" : ", or one sequence per row") +
        "; an array is (N, T, " + channels + "). Tables of qornn fit work too: columns called label, id, time and group are no samples.",
      samples: [
        wave("Sine", (phase) => Math.sin(2 * Math.PI * phase)),
        wave("Square", (phase) => (phase % 1 < 0.5 ? 1 : -1)),
        wave("Noise", () => 2 * Math.random() - 1),
      ],
      frame: null,
      asFloats: () => facts.floats && (drawn || document.getElementById("units").value === "floats"),
      clear: clear,
      read: (table) => QORNN_SAMPLES.sequences(table, facts),
      take(sequence) {
        [rows, drawn, cursor, last] = [sequence, false, 0, null];
      },
      steps() {
        const found = [];
        for (let t = 0; t + window_ <= rows.length; t += window_) found.push(rows.slice(t, t + window_).flat());
        return found;
      },
      show: show,
    };
  };
})();
