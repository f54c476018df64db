// Small curves over the iterations of a campaign, as SVG.

import { element } from "./board.js";

const [WIDTH, HEIGHT, EDGE] = [240, 72, 4];

/** A figure of one curve of /api/campaign: label, newest value, the curve with its interval, and its range. */
export function drawCurve({ label, newest, points, band, from, to }) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const [name, value] = [document.createElement("span"), document.createElement("b")];
  name.textContent = label;
  value.textContent = newest;
  caption.append(name, value);
  const svg = element("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none",
    "aria-label": `${label}: ${newest} now, between ${from} and ${to} over ${points.length} iterations`,
  });
  const values = [...points.map(([, v]) => v), ...band.flatMap(([, low, high]) => [low, high])];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [first, last] = [points[0][0], points.at(-1)[0]];
  const x = (iteration) => (last === first ? WIDTH / 2
    : EDGE + ((iteration - first) / (last - first)) * (WIDTH - 2 * EDGE));
  const y = (v) => (high === low ? HEIGHT / 2
    : HEIGHT - EDGE - ((v - low) / (high - low)) * (HEIGHT - 2 * EDGE));
  if (band.length > 1) {
    const above = band.map(([i, , top]) => `${x(i)} ${y(top)}`);
    const below = band.map(([i, bottom]) => `${x(i)} ${y(bottom)}`).reverse();
    element("path", { class: "band", d: `M${[...above, ...below].join(" L")} Z` }, svg);
  }
  if (points.length > 1) {
    element("path", {
      class: "curve", d: `M${points.map(([i, v]) => `${x(i)} ${y(v)}`).join(" L")}`,
      "vector-effect": "non-scaling-stroke",
    }, svg);
  }
  element("circle", { class: "newest", cx: x(last), cy: y(points.at(-1)[1]), r: 3 }, svg);
  figure.append(caption, svg);
  const range = document.createElement("small");
  range.textContent = from === to ? `always ${from}` : `${from} to ${to}`;
  figure.append(range);
  return figure;
}
