"use strict";
/* What every chart of the page shares. */

var QORNN_CANVAS = (function () {
  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  /* The pen of an empty canvas of so many CSS pixels, as sharp as the screen is. */
  function sized(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    return pen;
  }

  /* A line through y(0) … y(n − 1), of which a narrow chart draws the least and the largest of each column. NaN is a gap. */
  function line(pen, n, x, y) {
    const step = Math.max(1, Math.floor(n / (2 * Math.max(1, x(n - 1) - x(0)))));
    let on = false;
    pen.beginPath();
    for (let t = 0; t < n; t += step) {
      let [low, high] = [Infinity, -Infinity];
      for (let s = t; s < Math.min(n, t + step); s++) [low, high] = [Math.min(low, y(s)), Math.max(high, y(s))];
      for (const value of step > 1 ? [low, high] : [y(t)]) {
        if (!Number.isFinite(value)) on = false;
        else if (on) pen.lineTo(x(t), value);
        else pen.moveTo(x(t), value);
        on = Number.isFinite(value);
      }
    }
    pen.stroke();
  }

  /* A number with few digits. */
  function short(value) {
    return String(Number(value.toPrecision(3)));
  }

  /* Text in its place, on a ground that keeps it readable. */
  function write(pen, text, x, y) {
    pen.fillStyle = colour("--back");
    pen.fillRect(x - 2, y - 11, pen.measureText(text).width + 4, 14);
    pen.fillStyle = colour("--text");
    pen.fillText(text, x, y);
  }

  /* Whether to show where the keys draw. */
  function keyed(canvas) {
    return document.activeElement === canvas && !canvas.dataset.pointed;
  }

  /* Pointer events as begin(place), go(place) and end(); a place is a fraction of the canvas. */
  function pointer(canvas, begin, go, end) {
    let down = false;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };
    canvas.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      canvas.focus();
      canvas.setPointerCapture(event.pointerId);
      canvas.dataset.pointed = "yes";
      down = true;
      begin(place(event));
    });
    canvas.addEventListener("keydown", () => delete canvas.dataset.pointed);
    canvas.addEventListener("pointermove", (event) => down && go(place(event)));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => {
        if (down) end();
        down = false;
      });
    }
  }

  return { colour: colour, sized: sized, line: line, short: short, write: write, keyed: keyed, pointer: pointer };
})();
