/* node drive_chromium.js CHROMIUM INDEX.HTML WIDTH < actions.json: opens the page in a headless browser, sends it pointer,
   touch and key events and files, and prints what it shows as JSON. It speaks the browser's own protocol over two pipes. */
"use strict";
const { spawn } = require("child_process");
const fs = require("fs");
const { pathToFileURL } = require("url");

const [program, page, width] = process.argv.slice(2);
const asked = JSON.parse(fs.readFileSync(0, "utf8"));
const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"];
const browser = spawn(program, [...options, "--user-data-dir=" + asked.profile, "about:blank"], {
  stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
});
const waiting = new Map();
let [number, session, rest] = [0, undefined, ""];
const problems = [];
const requests = [];

browser.stdio[4].setEncoding("utf8");
browser.stdio[4].on("data", (data) => {
  const messages = (rest + data).split("\0");
  rest = messages.pop();
  for (const message of messages.map((text) => JSON.parse(text))) {
    if (message.method === "Runtime.exceptionThrown") problems.push(message.params.exceptionDetails);
    if (message.method === "Network.requestWillBeSent") requests.push(message.params.request.url);
    if (!waiting.has(message.id)) continue;
    const [resolve, reject] = waiting.get(message.id);
    if (message.error) reject(new Error(message.error.message));
    else resolve(message.result);
  }
});

function send(method, params) {
  return new Promise((resolve, reject) => {
    waiting.set(++number, [resolve, reject]);
    browser.stdio[3].write(JSON.stringify({ id: number, method, params, sessionId: session }) + "\0");
  });
}

async function value(expression) {
  const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception.description);
  return result.value;
}

async function until(expression) {
  for (let tries = 0; tries < 600; tries++) {
    if (await value(expression)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("never true: " + expression);
}

const INPUT = 'document.getElementById("input")';
const DONE = "document.body.dataset.running === 'no' && /after|:/.test(['progress', 'message'].map((id) => document.getElementById(id).textContent))";
const stops = []; // of the Tab key
const answers = []; // to the drawings
const mouse = (type, [x, y]) =>
  send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: type === "mouseReleased" ? 0 : 1, clickCount: 1 });

/* Points are fractions of the canvas. */
async function draw(points) {
  await value("document.getElementById('input').scrollIntoView({ block: 'center' })");
  const box = await value(`(({ left, top, width, height }) => ({ left, top, width, height }))(${INPUT}.getBoundingClientRect())`);
  const at = points.map(([x, y]) => [box.left + x * box.width, box.top + y * box.height]);
  if (asked.touch) return touch(at);
  await mouse("mousePressed", at[0]);
  for (const point of at.slice(1)) await mouse("mouseMoved", point);
  await mouse("mouseReleased", at[at.length - 1]);
}

async function touch(at) {
  const send_ = (type, points) => send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y]) => ({ x, y })) });
  await send_("touchStart", [at[0]]);
  for (const point of at.slice(1)) await send_("touchMove", [point]);
  await send_("touchEnd", []);
}

/* A key; Tab gives the id of what has the focus then. */
async function press(key) {
  const code = { Tab: 9, Enter: 13, " ": 32 }[key];
  const text = { Enter: "\r", " ": " " }[key];
  await send("Input.dispatchKeyEvent", { type: "keyDown", key, code: key, text, windowsVirtualKeyCode: code });
  await send("Input.dispatchKeyEvent", { type: "keyUp", key, code: key, windowsVirtualKeyCode: code });
  if (key === "Tab") stops.push(await value("document.activeElement.id || document.activeElement.textContent"));
}

/* A file from the desktop, dropped on the page. */
async function drop(file) {
  const data = { items: [], files: [file], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await send("Input.dispatchDragEvent", { type, x: 100, y: 300, data });
}

const PIXELS = `(() => {
  const canvas = document.getElementById("pixels"), side = Number(canvas.dataset.side);
  if (!side) return null;
  const pen = canvas.getContext("2d"), found = [];
  for (let i = 0; i < side * side; i++) found.push(pen.getImageData((i % side) * 16 + 8, Math.floor(i / side) * 16 + 8, 1, 1).data[0]);
  return found;
})()`;

/* Texts whose colour is too near to that of what is behind them: the least ratio of WCAG 2 AA is 4.5. */
const FAINT = `(() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const found = numbers(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const texts = [...document.body.querySelectorAll("*")].filter((e) => e.checkVisibility() &&
    [...e.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  const all = texts.map((e) => [ratio(light(numbers(getComputedStyle(e).color)), light(behind(e))), e.id || e.textContent]);
  return { count: all.length, least: Math.min(...all.map(([r]) => r)), faint: all.filter(([r]) => r < 4.5) };
})()`;

async function main() {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
  await send("Runtime.enable", {});
  await send("Network.enable", {});
  await send("Emulation.setDeviceMetricsOverride", { width: Number(width), height: 800, deviceScaleFactor: 1, mobile: Boolean(asked.touch) });
  if (asked.touch) await send("Emulation.setTouchEmulationEnabled", { enabled: true });
  await send("Page.navigate", { url: pathToFileURL(page).href });
  await until("document.readyState === 'complete' && /xact|not run/.test((document.getElementById('check') || {}).textContent)");
  await value(`document.getElementById("speed").value = ${asked.speed}`);
  if (asked.script) await value(asked.script);
  for (const points of asked.strokes || []) {
    await draw(points);
    if (asked.speed < 4) await until("/after [1-9]/.test(document.getElementById('progress').textContent)");
  }
  for (const strokes of asked.drawings || []) {
    await value("document.getElementById('clear').click()");
    for (const points of strokes) await draw(points);
    await until(DONE);
    answers.push(await value("document.getElementById('answer').textContent"));
  }
  if (asked.file) {
    const { root } = await send("DOM.getDocument", {});
    const { nodeId } = await send("DOM.querySelector", { nodeId: root.nodeId, selector: "#file" });
    await send("DOM.setFileInputFiles", { nodeId, files: [asked.file] });
  }
  if (asked.drop) await drop(asked.drop);
  if (asked.focus) await value(`${INPUT}.focus()`);
  for (const key of asked.keys || []) await press(key);
  if (asked.then) {
    await until(DONE);
    await value(asked.then);
  }
  const seen = await value("document.getElementById('progress').textContent");
  await until(DONE);
  const shown = (id) => value(`document.getElementById("${id}").textContent`);
  const found = { check: await shown("check"), answer: await shown("answer"), progress: await shown("progress"), seen };
  for (const id of ["message", "said", "input-help"]) found[id] = await shown(id);
  Object.assign(found, { stops, answers });
  found.outputs = await value("[...document.querySelectorAll('td.number')].map((cell) => Number(cell.textContent))");
  found.contrast = {};
  for (const scheme of ["dark", "light"]) {
    await value("window.before = document.getElementById('history').toDataURL()");
    await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    if (found.progress) await until("document.getElementById('history').toDataURL() !== window.before"); // drawn anew
    found.contrast[scheme] = await value(FAINT);
  }
  found.width = await value("document.documentElement.scrollWidth");
  found.pixels = await value(PIXELS);
  found.unlabelled = await value("[...document.querySelectorAll('input, select')].filter((each) => !each.labels.length).length");
  if (asked.picture) {
    if (asked.scheme) {
      await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: asked.scheme }] });
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    const height = asked.height || (await value("document.documentElement.scrollHeight"));
    const clip = { x: 0, y: 0, width: Number(width), height, scale: 1 };
    const { data } = await send("Page.captureScreenshot", { captureBeyondViewport: true, clip });
    fs.writeFileSync(asked.picture, Buffer.from(data, "base64"));
  }
  console.log(JSON.stringify({ ...found, problems, requests }));
}

main()
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(() => browser.kill());
