"use strict";
/* From strokes to pixels, framed as in the training data. A stroke is a list of [x, y] in 0..1 of the canvas. */

var QORNN_DRAWING = (function () {
  const CURVE = 6; // points between two of a smooth stroke

  /* How far a point is from a segment. */
  function distance(x, y, [ax, ay], [bx, by]) {
    const [dx, dy] = [bx - ax, by - ay];
    const length = dx * dx + dy * dy;
    const along = length ? Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / length)) : 0;
    return Math.hypot(x - ax - along * dx, y - ay - along * dy);
  }

  /* Shares of ink, row by row: a round pen with a soft edge of one pixel. Strokes are in pixels. */
  function ink(strokes, side, pen) {
    const found = new Float64Array(side * side);
    const reach = pen / 2 + 0.5;
    function segment(a, b) {
      const from = (i) => Math.max(0, Math.floor(Math.min(a[i], b[i]) - reach));
      const to = (i) => Math.min(side - 1, Math.ceil(Math.max(a[i], b[i]) + reach));
      for (let y = from(1); y <= to(1); y++) {
        for (let x = from(0); x <= to(0); x++) {
          const share = Math.max(0, Math.min(1, reach - distance(x + 0.5, y + 0.5, a, b)));
          found[y * side + x] = Math.max(found[y * side + x], share);
        }
      }
    }
    strokes.forEach((stroke) => stroke.forEach((point, i) => segment(stroke[Math.max(0, i - 1)], point)));
    return found;
  }

  function moved(strokes, scale, right, down) {
    return strokes.map((stroke) => stroke.map(([x, y]) => [x * scale + right, y * scale + down]));
  }

  /* Where all ink balances. */
  function balance(shares, side) {
    let [sum, x, y] = [0, 0, 0];
    shares.forEach((share, i) => {
      sum += share;
      x += share * ((i % side) + 0.5);
      y += share * (Math.floor(i / side) + 0.5);
    });
    return sum ? [x / sum, y / sum] : [side / 2, side / 2];
  }

  /* Strokes in pixels, as large as a drawing is in the data, and in the middle by their box or by their ink. */
  function framed(strokes, { side, pen, box, by_ink }) {
    const points = strokes.flat();
    const end = (choose, i) => points.reduce((found, point) => choose(found, point[i]), points[0][i]);
    const [left, right, top, bottom] = [end(Math.min, 0), end(Math.max, 0), end(Math.min, 1), end(Math.max, 1)];
    const size = Math.max(right - left, bottom - top);
    const scale = size ? (box - pen) / size : side;
    const middle = side / 2;
    const found = moved(strokes, scale, middle - (scale * (left + right)) / 2, middle - (scale * (top + bottom)) / 2);
    if (!by_ink) return found;
    const [x, y] = balance(ink(found, side, pen), side);
    return moved(found, 1, middle - x, middle - y);
  }

  /* Shares of ink of what is drawn: as it is, or framed. */
  function pixels(strokes, picture, frame) {
    if (!strokes.length) return new Float64Array(picture.side * picture.side);
    const placed = frame ? framed(strokes, picture) : moved(strokes, picture.side, 0, 0);
    return ink(placed, picture.side, picture.pen);
  }

  /* A smooth line through points (Catmull-Rom). */
  function smooth(points) {
    const at = (i) => points[Math.max(0, Math.min(points.length - 1, i))];
    const found = [points[0]];
    for (let i = 0; i + 1 < points.length; i++) {
      const [a, b, c, d] = [at(i - 1), at(i), at(i + 1), at(i + 2)];
      for (let step = 1; step <= CURVE; step++) {
        const t = step / CURVE;
        const mix = (k) =>
          b[k] + 0.5 * t * (c[k] - a[k] + t * (2 * a[k] - 5 * b[k] + 4 * c[k] - d[k] + t * (3 * (b[k] - c[k]) + d[k] - a[k])));
        found.push([mix(0), mix(1)]);
      }
    }
    return found;
  }

  /* Strokes of the ten digits, in hundredths, from left to right and top to bottom. */
  const DIGITS = [
    [[50, 5, 26, 20, 18, 50, 26, 80, 50, 95, 74, 80, 82, 50, 74, 20, 50, 5]],
    [[56, 5, 46, 95]],
    [[22, 26, 36, 8, 64, 8, 76, 27, 62, 52, 40, 74, 18, 93], [18, 93, 82, 93]],
    [[22, 12, 50, 5, 75, 20, 68, 40, 44, 48, 72, 58, 78, 78, 52, 95, 20, 88]],
    [[28, 8, 20, 52], [20, 52, 80, 52], [70, 8, 64, 95]],
    [[76, 7, 34, 7], [34, 7, 30, 44], [30, 44, 56, 40, 76, 58, 70, 84, 46, 95, 20, 86]],
    [[66, 5, 40, 26, 24, 60, 30, 88, 54, 95, 74, 76, 62, 56, 40, 58, 26, 74]],
    [[20, 8, 80, 8], [80, 8, 56, 50, 42, 95]],
    [[50, 50, 28, 30, 36, 9, 62, 8, 73, 26, 50, 48, 26, 72, 36, 93, 62, 94, 74, 74, 50, 50]],
    [[74, 26, 54, 7, 30, 18, 30, 42, 52, 50, 72, 30, 74, 26], [74, 26, 70, 60, 60, 95]],
  ];

  function digit(number) {
    return DIGITS[number].map((flat) =>
      smooth(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] / 100, flat[2 * i + 1] / 100]))
    );
  }

  return { pixels: pixels, digit: digit };
})();
