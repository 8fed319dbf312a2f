/* node drive_chromium.js CHROMIUM INDEX.HTML WIDTH < actions.json: opens the page in a headless browser, sends it pointer
   and key events, and prints what it shows as JSON. It speaks the browser's own protocol over two pipes. */
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

const mouse = (type, [x, y]) =>
  send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: type === "mouseReleased" ? 0 : 1, clickCount: 1 });

/* Points are fractions of the canvas. */
async function draw(points) {
  await value("document.getElementById('input').scrollIntoView({ block: 'center' })");
  const box = await value("(({ left, top, width, height }) => ({ left, top, width, height }))(document.getElementById('input').getBoundingClientRect())");
  const at = points.map(([x, y]) => [box.left + x * box.width, box.top + y * box.height]);
  await mouse("mousePressed", at[0]);
  for (const point of at.slice(1)) await mouse("mouseMoved", point);
  await mouse("mouseReleased", at[at.length - 1]);
}

async function press(key) {
  const text = key === " " ? " " : undefined;
  await send("Input.dispatchKeyEvent", { type: "keyDown", key, text });
  await send("Input.dispatchKeyEvent", { type: "keyUp", key });
}

const PIXELS = `(() => {
  const canvas = document.getElementById("input"), side = Number(canvas.dataset.side);
  if (!side) return null;
  const pen = canvas.getContext("2d"), found = [];
  for (let i = 0; i < side * side; i++) found.push(pen.getImageData((i % side) * 16 + 8, Math.floor(i / side) * 16 + 8, 1, 1).data[0]);
  return found;
})()`;

async function main() {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
  await send("Runtime.enable", {});
  await send("Network.enable", {});
  await send("Emulation.setDeviceMetricsOverride", { width: Number(width), height: 800, deviceScaleFactor: 1, mobile: false });
  await send("Page.navigate", { url: pathToFileURL(page).href });
  await until("document.readyState === 'complete' && /xact|not run/.test((document.getElementById('check') || {}).textContent)");
  await value(`document.getElementById("speed").value = ${asked.speed}`);
  for (const points of asked.strokes || []) {
    await draw(points);
    if (asked.speed < 4) await until("/after [1-9]/.test(document.getElementById('progress').textContent)");
  }
  if (asked.file) {
    const { root } = await send("DOM.getDocument", {});
    const { nodeId } = await send("DOM.querySelector", { nodeId: root.nodeId, selector: "#file" });
    await send("DOM.setFileInputFiles", { nodeId, files: [asked.file] });
  }
  if (asked.keys) await value("document.getElementById('input').focus()");
  for (const key of asked.keys || []) await press(key);
  const seen = await value("document.getElementById('progress').textContent");
  await until("document.body.dataset.running === 'no' && /after/.test(document.getElementById('progress').textContent)");
  const shown = (id) => value(`document.getElementById("${id}").textContent`);
  const found = { check: await shown("check"), answer: await shown("answer"), progress: await shown("progress"), seen };
  found.message = await shown("message");
  found.width = await value("document.documentElement.scrollWidth");
  found.pixels = await value(PIXELS);
  found.unlabelled = await value("[...document.querySelectorAll('input, select')].filter((each) => !each.labels.length).length");
  if (asked.picture) {
    const { data } = await send("Page.captureScreenshot", { captureBeyondViewport: true });
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
