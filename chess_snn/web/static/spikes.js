// Spikes of one evaluation: every layer a canvas, every channel a small board of 8 by 8 (or 4 by 4)
// cells, tick by tick. A cell is the brighter the more often its neuron fired.

import { counted } from "./words.js";

const GAP = 3; // pixels between tiles
const TICK_MS = 700;

const percent = (share) => `${(100 * share).toFixed(1)}%`;
const large = (count) => (count >= 1e6 ? `${(count / 1e6).toFixed(1)} M` : count.toLocaleString("en"));

/** Names of layers for people: "blocks.0.neurons1" is "block 1, neurons 1". */
function layerTitle(name) {
  if (name === "neurons") return "before the heads";
  const [, number, rest] = name.match(/^blocks\.(\d+)\.(.*)$/) ?? [null, null, name];
  const words = rest.replace(/[._]/g, " ").replace(/([a-z])(\d)/g, "$1 $2");
  return number === null ? words : `block ${Number(number) + 1}, ${words}`;
}

/** The spikes of a frame as one array of numbers for each layer. */
function unpack(header, bytes) {
  let at = 0;
  return header.layers.map((layer) => {
    const size = layer.shape.reduce((product, length) => product * length, 1);
    if (header.bits === 8) {
      at += size;
      return bytes.subarray(at - size, at);
    }
    const spikes = new Uint8Array(size);
    for (let i = 0; i < size; i++) spikes[i] = (bytes[at + (i >> 3)] >> (7 - (i & 7))) & 1;
    at += Math.ceil(size / 8);
    return spikes;
  });
}

export class SpikesView {
  /**
   * Draw into `root`. `onTile(tile or null)` hears of the channel that is pointed at; `hasLines` says
   * whether spikes come of the end of the best line too.
   */
  constructor(root, { onTile = () => {}, hasLines = true } = {}) {
    this.root = root;
    this.onTile = onTile;
    this.frames = {}; // "position", "line" and "changes"
    this.of = "position";
    this.tick = "all";
    this.layers = [];
    root.innerHTML = `
      <div class="card-head"><h2>Spikes</h2>
        <div class="choices" role="group" aria-label="Which evaluation" data-for="of">
          <button aria-pressed="true" data-value="position">this position</button><button
            aria-pressed="false" data-value="line">end of the best line</button><button
            aria-pressed="false" data-value="changes">what changed</button>
        </div>
      </div>
      <div class="choices ticks" role="group" aria-label="Tick" data-for="tick"></div>
      <p class="summary"></p>
      <div class="layers" tabindex="0" role="group" aria-label="Layers of neurons"></div>
      <p class="note tile-note"></p>`;
    const find = (selector) => root.querySelector(selector);
    find(".choices").hidden = !hasLines;
    this.summary = find(".summary");
    this.list = find(".layers");
    this.note = find(".tile-note");
    this.ticks = find(".ticks");
    root.addEventListener("click", ({ target }) => {
      const group = target.closest(".choices");
      if (group && target.dataset.value) this.choose(group.dataset.for, target.dataset.value);
    });
    this.colours = matchMedia("(prefers-color-scheme: dark)");
    this.colours.addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.list);
    this.show();
  }

  /** Begin with a new position: what is shown stays until its spikes have come. */
  expect() {
    this.isStale = true;
  }

  receive(header, bytes) {
    if (this.isStale) this.frames = {};
    this.isStale = false;
    this.frames[header.of] = { header, spikes: unpack(header, bytes) };
    if (header.of === this.of || !this.frames[this.of]) this.show();
  }

  choose(what, value) {
    clearInterval(this.timer);
    this.timer = null;
    if (value === "play") this.play();
    else this[what] = what === "tick" && value !== "all" ? Number(value) : value;
    this.show();
  }

  /** Tick after tick, until another choice is made. */
  play() {
    this.tick = this.tick === "all" ? 0 : this.tick;
    this.timer = setInterval(() => {
      this.tick = (this.tick + 1) % (this.frame?.header.layers[0]?.shape[0] ?? 1);
      this.show();
    }, TICK_MS);
  }

  get frame() {
    return this.frames[this.of] ?? (this.of === "changes" ? undefined : this.frames.position);
  }

  show() {
    const { frame } = this;
    for (const button of this.root.querySelectorAll('[data-for="of"] button')) {
      button.setAttribute("aria-pressed", button.dataset.value === this.of);
    }
    this.list.hidden = !frame?.header.layers.length;
    if (!frame) {
      this.summary.textContent = this.frames.position
        ? "Before this side's second turn there is nothing to compare with."
        : "Spikes appear with the first search.";
      return;
    }
    const { header } = frame;
    this.summary.textContent = header.of === "changes" && header.layers.length
      ? `${percent(header.neurons)} of the neurons changed since this side's last turn: `
        + `${header.total.toLocaleString("en")} spikes, ${large(header.work.accumulates)} accumulates.`
      : header.layers.length
      ? `${header.line ? `After ${header.line}: ` : ""}${header.total.toLocaleString("en")} spikes, `
        + `${percent(header.share)} of what is possible; ${large(header.work.accumulates)} `
        + `accumulates and ${large(header.work.multiply_accumulates)} multiply-accumulates of `
        + `${large(header.work.dense)} dense operations.`
      : "An ordinary network: it has no spikes.";
    this.showTicks(header.layers[0]?.shape[0] ?? 0);
    this.showLayers();
    this.draw();
  }

  showTicks(count) {
    this.ticks.hidden = count < 2;
    if (this.tick !== "all" && this.tick >= count) this.tick = "all";
    const values = ["all", ...Array(count).keys(), "play"];
    if (this.ticks.children.length !== values.length) {
      this.ticks.replaceChildren(...values.map((value) => {
        const button = document.createElement("button");
        button.dataset.value = value;
        button.textContent = { all: "all ticks", play: "▶ play" }[value] ?? `tick ${value + 1}`;
        return button;
      }));
    }
    for (const button of this.ticks.children) {
      const isOn = button.dataset.value === (this.timer ? "play" : String(this.tick));
      button.setAttribute("aria-pressed", isOn);
    }
  }

  showLayers() {
    const { header } = this.frame;
    if (this.layers.length !== header.layers.length) {
      this.layers = header.layers.map(() => this.makeLayer());
      this.list.replaceChildren(...this.layers.map((layer) => layer.figure));
    }
    header.layers.forEach(({ name, rate, spikes, shape }, i) => {
      const title = layerTitle(name);
      const ticks = counted(shape[0], "tick");
      this.layers[i].name.textContent = title;
      this.layers[i].rate.textContent = `${spikes.toLocaleString("en")} · ${percent(rate)}`;
      this.layers[i].canvas.setAttribute("aria-label",
        `${title}: ${counted(spikes, "spike")} of ${counted(shape[1], "channel")} in ${ticks}, ${percent(rate)}`);
    });
  }

  makeLayer() {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const [name, rate] = [document.createElement("span"), document.createElement("span")];
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    caption.append(name, rate);
    figure.append(caption, canvas);
    const layer = { figure, name, rate, canvas };
    canvas.addEventListener("pointermove", (event) => this.point(layer, event));
    canvas.addEventListener("pointerleave", () => this.point(layer, null));
    return layer;
  }

  /** Draw all canvases. */
  draw() {
    if (!this.frame?.header.layers.length || !this.list.clientWidth) return;
    const style = getComputedStyle(this.root);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.palette = { empty: colour("--spike-empty"), full: colour("--spike-full") };
    this.layers.forEach((layer, i) => this.drawLayer(layer, i));
  }

  /** Spikes of a layer as channels of cells for the chosen tick: {counts, channels, height, width}. */
  plane(i) {
    const { header, spikes } = this.frame;
    const [ticks, first, height, width] = header.layers[i].shape;
    const size = spikes[i].length / ticks;
    const counts = new Float32Array(size);
    const chosen = this.tick === "all" ? [...Array(ticks).keys()] : [this.tick];
    for (const tick of chosen) {
      for (let k = 0; k < size; k++) counts[k] += spikes[i][tick * size + k];
    }
    const most = header.most * chosen.length;
    if (height) return { counts, most, channels: first, height, width };
    return { counts, most, channels: Math.ceil(first / 64), height: 8, width: 8 }; // no board
  }

  drawLayer(layer, i) {
    const { counts, most, channels, height, width } = this.plane(i);
    const ratio = window.devicePixelRatio || 1;
    const room = this.list.clientWidth - 4;
    const scale = height <= 4 ? 5 : 3;
    const tile = width * scale + GAP;
    const fitting = Math.max(1, Math.min(channels, Math.floor((room + GAP) / tile)));
    const rows = Math.ceil(channels / fitting);
    const columns = Math.ceil(channels / rows); // the last row is as full as may be
    const { canvas } = layer;
    const [wide, high] = [columns * tile - GAP, rows * (height * scale + GAP) - GAP];
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    Object.assign(layer, { columns, tile, scale, height, width, channels, counts, most });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    for (let channel = 0; channel < channels; channel++) {
      const left = (channel % columns) * tile;
      const top = Math.floor(channel / columns) * (height * scale + GAP);
      context.globalAlpha = 1;
      context.fillStyle = this.palette.empty;
      context.fillRect(left, top, width * scale, height * scale);
      context.fillStyle = this.palette.full;
      for (let k = 0; k < height * width; k++) {
        const count = counts[channel * height * width + k];
        if (!count) continue;
        context.globalAlpha = 0.35 + 0.65 * (count / most);
        const row = height - 1 - Math.floor(k / width); // the mover's side is below
        const y = height === 8 ? row : Math.floor(k / width);
        context.fillRect(left + (k % width) * scale, top + y * scale, scale, scale);
      }
    }
  }

  /** Tell which channel is pointed at, and show its cells on the board. */
  point(layer, event) {
    const isBoard = layer.height === 8 && layer.channels > 1;
    const column = event ? Math.floor(event.offsetX / layer.tile) : 0;
    const row = event ? Math.floor(event.offsetY / (layer.height * layer.scale + GAP)) : 0;
    const channel = row * layer.columns + column;
    if (!event || channel >= layer.channels) {
      this.note.textContent = "";
      this.onTile(null);
      return;
    }
    const size = layer.height * layer.width;
    const cells = layer.counts.subarray(channel * size, (channel + 1) * size);
    const total = cells.reduce((sum, count) => sum + count, 0);
    this.note.textContent = `${layer.name.textContent}, channel ${channel + 1}: ${counted(total, "spike")}`;
    this.onTile(isBoard ? { cells, most: layer.most, flips: this.frame.header.flips } : null);
  }
}
