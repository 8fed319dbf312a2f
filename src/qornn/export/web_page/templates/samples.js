"use strict";
/* Sequences from a .csv or .npy file: a list of sequences, each a list of rows of numbers. */

var QORNN_SAMPLES = (function () {
  const READERS = {
    f8: (data, at, little) => data.getFloat64(at, little),
    f4: (data, at, little) => data.getFloat32(at, little),
    i8: (data, at, little) => Number(data.getBigInt64(at, little)),
    u8: (data, at, little) => Number(data.getBigUint64(at, little)),
    i4: (data, at, little) => data.getInt32(at, little),
    u4: (data, at, little) => data.getUint32(at, little),
    i2: (data, at, little) => data.getInt16(at, little),
    u2: (data, at, little) => data.getUint16(at, little),
    i1: (data, at) => data.getInt8(at),
    u1: (data, at) => data.getUint8(at),
    b1: (data, at) => data.getUint8(at),
  };

  /* { shape, numbers } of a .npy file. */
  function npy(buffer) {
    const data = new DataView(buffer);
    const letters = new Uint8Array(buffer);
    if (buffer.byteLength < 10 || String.fromCharCode.apply(null, letters.subarray(1, 6)) !== "NUMPY") {
      throw new Error("this is no .npy file; numpy.save writes one");
    }
    const wide = letters[6] > 1;
    const start = wide ? 12 : 10;
    const length = wide ? data.getUint32(8, true) : data.getUint16(8, true);
    const header = String.fromCharCode.apply(null, letters.subarray(start, start + length));
    const kind = /'descr':\s*'([<>|=])(\w\d)'/.exec(header);
    const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(header);
    if (!kind || !shape || !READERS[kind[2]]) {
      throw new Error("the .npy file must hold integers or float32 or float64 numbers");
    }
    if (/'fortran_order':\s*True/.test(header)) {
      throw new Error("the .npy file is in Fortran order; save numpy.ascontiguousarray(x)");
    }
    const sizes = (shape[1].match(/\d+/g) || []).map(Number);
    const count = sizes.reduce((product, n) => product * n, 1);
    const size = Number(kind[2][1]);
    if (start + length + count * size > buffer.byteLength) {
      throw new Error("the .npy file is shorter than it says");
    }
    const numbers = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      numbers[i] = READERS[kind[2]](data, start + length + i * size, kind[1] !== ">");
    }
    return { shape: sizes, numbers: numbers };
  }

  /* The same of a .csv file; a first line of words is a header. */
  function csv(text) {
    const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
    const rows = lines.map((line) => line.split(/[,;\t]/).map((cell) => (cell.trim() === "" ? NaN : Number(cell))));
    if (rows.length > 1 && rows[0].every(Number.isNaN)) {
      rows.shift();
      lines.shift();
    }
    const width = rows.length ? rows[0].length : 0;
    rows.forEach((row, at) => {
      if (row.length !== width || row.some(Number.isNaN)) {
        throw new Error("row " + (at + 1) + " of the .csv file must be " + width + " numbers, got " + lines[at].slice(0, 40));
      }
    });
    return { shape: [rows.length, width], numbers: Float64Array.from(rows.flat()) };
  }

  /* Sequences of rows of so many channels. (T,), (T, C), (N, T) of one channel, or (N, T, C). */
  function sequences(table, channels) {
    const { shape, numbers } = table;
    let count = 1;
    if (shape.length === 3) {
      count = shape[0];
    } else if (shape.length === 2 && channels === 1 && shape[1] > 1) {
      count = shape[0];
    }
    const each = numbers.length / count;
    const last = shape[shape.length - 1];
    if (!numbers.length || each % channels || (channels > 1 && last !== channels)) {
      throw new Error("a row must hold " + channels + " numbers, one per channel; the file has shape " + shape.join(" × "));
    }
    return Array.from({ length: count }, (_, n) =>
      Array.from({ length: each / channels }, (_, t) =>
        Array.from(numbers.subarray(n * each + t * channels, n * each + (t + 1) * channels))
      )
    );
  }

  /* Images of side × side numbers, row by row. */
  function images(table, side) {
    const size = side * side;
    if (!table.numbers.length || table.numbers.length % size) {
      throw new Error("an image is " + side + " × " + side + " numbers; the file has shape " + table.shape.join(" × "));
    }
    return Array.from({ length: table.numbers.length / size }, (_, n) => table.numbers.slice(n * size, (n + 1) * size));
  }

  return { npy: npy, csv: csv, sequences: sequences, images: images };
})();
