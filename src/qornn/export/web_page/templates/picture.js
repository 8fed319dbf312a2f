"use strict";
/* An image that one draws, and whose pixels are read one after another. */

var QORNN_PICTURE = (function () {
  const { keyed, pointer, sized } = QORNN_CANVAS;
  const PAPER = 320; // pixels of the canvas one draws on
  const CELL = 16; // pixels of a pixel that is read

  return function (canvas, seen, facts, changed) {
    const { side, order } = facts.picture;
    let strokes = [];
    let image = null; // of a file
    let frame = true;
    let cursor = [0.5, 0.5];
    let held = false; // the pen of the keyboard
    canvas.className = "picture";
    seen.dataset.side = side;

    function pixels() {
      if (image) return image;
      const shares = QORNN_DRAWING.pixels(strokes, facts.picture, frame);
      return shares.map((share) => Math.round(facts.low + share * (facts.high - facts.low)));
    }

    function showPaper() {
      const pen = sized(canvas, PAPER, PAPER);
      pen.fillStyle = "#000000";
      pen.fillRect(0, 0, PAPER, PAPER);
      pen.strokeStyle = "#ffffff";
      pen.lineWidth = PAPER / 16;
      pen.lineCap = pen.lineJoin = "round";
      for (const stroke of strokes) {
        pen.beginPath();
        pen.moveTo(stroke[0][0] * PAPER, stroke[0][1] * PAPER);
        for (const [x, y] of stroke) pen.lineTo(x * PAPER, y * PAPER);
        pen.stroke();
      }
      if (keyed(canvas)) {
        pen.strokeStyle = held ? "#ff9800" : "#4db6ac";
        pen.lineWidth = 3;
        pen.strokeRect(cursor[0] * PAPER - 8, cursor[1] * PAPER - 8, 16, 16);
      }
    }

    /* Before step `at`; without it nothing is being read. */
    function show(at) {
      showPaper();
      seen.width = seen.height = side * CELL; // one cell is one pixel, whatever the screen
      const pen = seen.getContext("2d");
      pixels().forEach((value, i) => {
        const grey = Math.round((255 * (value - facts.low)) / (facts.high - facts.low));
        pen.fillStyle = "rgb(" + [grey, grey, grey].join(",") + ")";
        pen.fillRect((i % side) * CELL, Math.floor(i / side) * CELL, CELL, CELL);
      });
      if (at !== undefined && at < order.length) {
        pen.strokeStyle = "#ff9800";
        pen.lineWidth = 3;
        pen.strokeRect((order[at] % side) * CELL + 1.5, Math.floor(order[at] / side) * CELL + 1.5, CELL - 3, CELL - 3);
      }
    }

    function draw(place) {
      strokes[strokes.length - 1].push(place);
      show();
    }

    function begin(place) {
      changed(false);
      if (image) clear();
      strokes.push([]);
      draw(place);
    }

    function clear() {
      [strokes, image, held] = [[], null, false];
    }

    pointer(canvas, begin, draw, () => changed(true));
    canvas.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (way) {
        cursor = cursor.map((value, i) => Math.max(0, Math.min(1, value + way[i] / 16)));
        if (held) draw(cursor);
      } else if (event.key === " ") {
        held = !held;
        if (held) begin(cursor);
      } else if (event.key === "Enter") {
        held = false;
        changed(true);
      } else {
        return;
      }
      event.preventDefault();
      show();
    });
    canvas.addEventListener("focus", showPaper);
    canvas.addEventListener("blur", showPaper);

    return {
      help: "Draw a digit with a finger or the mouse, or choose one. By keyboard: arrows move the pen, space puts it down or " +
        "lifts it, Enter runs.",
      fileHelp: "Images of " + side + " × " + side + " numbers from " + facts.low + " to " + facts.high + ", row by row. They are " +
        "read as they are.",
      samples: facts.outputs.length === 10 ? facts.outputs.map((label, number) => ({
        label: label,
        take() {
          clear();
          strokes = QORNN_DRAWING.digit(number);
        },
      })) : [],
      frame(wanted) {
        frame = wanted;
      },
      asFloats: () => false,
      clear: clear,
      read: (table) => QORNN_SAMPLES.images(table, side),
      take(found) {
        clear();
        image = found;
      },
      steps() {
        const found = pixels();
        return order.map((pixel) => [found[pixel]]);
      },
      show: show,
    };
  };
})();
