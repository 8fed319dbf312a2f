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

  const ASIDE = ["label", "id", "time", "group"]; // columns of `qornn fit` that hold no samples

  function word(cell) {
    return cell !== "" && !/^nan$/i.test(cell) && Number.isNaN(Number(cell));
  }

  /* Rows of a .csv file as `qornn fit` takes them, and as sensors write them: a first line of words is a header. */
  function csv(text) {
    const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((line) => line.trim() !== "");
    if (!lines.length) throw new Error("the .csv file is empty");
    const mark = ["\t", ";", ","].find((each) => lines[0].includes(each)) || ",";
    const rows = lines.map((line, at) => ({ at: at + 1, cells: line.split(mark).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1")) }));
    const head = rows[0].cells.map((cell) => cell.toLowerCase());
    const named = rows.length > 1 && (head.includes("label") || head.every((cell) => cell === "" || word(cell)));
    const names = named ? head : head.map(() => "sample");
    const body = named ? rows.slice(1) : rows;
    if (names[0] === "") names[0] = "id"; // the numbers of rows that pandas writes
    if (!names.includes("label") && body.every((row) => word(row.cells[names.length - 1] || ""))) names[names.length - 1] = "label";
    return { names: names, rows: body.map((row) => read(row, names)) };
  }

  /* { at, numbers, label, id, time } of one row; empty cells at its end are no samples, others are missing ones. */
  function read(row, names) {
    const found = { at: row.at, numbers: [] };
    const bad = (what) => new Error("row " + row.at + " of the .csv file " + what);
    if (row.cells.length > names.length) throw bad("has " + row.cells.length + " cells of " + names.length + " columns");
    row.cells.forEach((cell, c) => {
      if (ASIDE.includes(names[c])) found[names[c]] = cell;
      else if (word(cell)) throw bad("must be numbers, got " + cell.slice(0, 40));
      else found.numbers.push(cell === "" ? NaN : Number(cell));
    });
    const filled = found.numbers.findLastIndex((value) => !Number.isNaN(value)) + 1;
    found.filled = found.numbers.slice(0, filled);
    return found;
  }

  /* Of a .csv: one sequence per id, per row where there is one channel, or all rows one after another. */
  function grouped({ names, rows }, channels) {
    const long = names.includes("id") && names.includes("time");
    const width = names.filter((name) => !ASIDE.includes(name)).length;
    if (!long && channels === 1 && width > 1) {
      return rows.map((row) => labelled(row.filled.map((value) => [value]), row.label));
    }
    if (width !== channels) {
      throw new Error("a row must hold " + channels + " numbers, one per channel; the file has " + width + " columns of samples");
    }
    const found = new Map();
    for (const row of rows) {
      const id = long ? row.id : "";
      if (!found.has(id)) found.set(id, labelled([], row.label));
      found.get(id).push(Array.from({ length: width }, (_, c) => (c < row.numbers.length ? row.numbers[c] : NaN)));
    }
    return [...found.values()];
  }

  function labelled(sequence, label) {
    if (label !== undefined) sequence.label = label;
    return sequence;
  }

  /* Of a .npy: (T,), (T, C), (N, T) of one channel, or (N, T, C). */
  function cut({ shape, numbers }, channels) {
    const several = shape.length === 3 || (shape.length === 2 && channels === 1 && shape[1] > 1);
    const count = several ? shape[0] : 1;
    const each = numbers.length / count;
    if (!numbers.length || each % channels || (channels > 1 && shape[shape.length - 1] !== channels)) {
      throw new Error("a row must hold " + channels + " numbers, one per channel; the file has shape " + shape.join(" × "));
    }
    return Array.from({ length: count }, (_, n) =>
      Array.from({ length: each / channels }, (_, t) =>
        Array.from(numbers.subarray(n * each + t * channels, n * each + (t + 1) * channels))
      )
    );
  }

  /* Sequences of rows of so many channels; a missing sample is NaN where the network holds the last one for it. */
  function sequences(table, { channels, hold }) {
    const found = table.rows ? grouped(table, channels) : cut(table, channels);
    found.forEach((sequence, n) =>
      sequence.forEach((row, t) =>
        row.forEach((value) => {
          if (!Number.isFinite(value) && !(hold && Number.isNaN(value))) {
            throw new Error("sample " + (t + 1) + " of sequence " + (n + 1) + " is missing or infinite");
          }
        })
      )
    );
    return found;
  }

  /* Images of side × side numbers, row by row. */
  function images(table, side) {
    const numbers = table.rows ? Float64Array.from(table.rows.flatMap((row) => row.numbers)) : table.numbers;
    const size = side * side;
    if (!numbers.length || numbers.length % size || numbers.some((value) => !Number.isFinite(value))) {
      throw new Error("an image is " + side + " × " + side + " numbers; the file has " + numbers.length);
    }
    const labels = table.rows && table.rows.length === numbers.length / size ? table.rows.map((row) => row.label) : [];
    return Array.from({ length: numbers.length / size }, (_, n) => labelled(numbers.slice(n * size, (n + 1) * size), labels[n]));
  }

  return { npy: npy, csv: csv, sequences: sequences, images: images };
})();
