// Curves: draws each figure.chart from the JSON inside it; pointer and arrow keys tell its values.
// Below board.js in one module, whose `element` it uses.
const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [220, 46, 10, 10, 24]; // pixels about the axes
const MOST_DOTS = 40; // a curve of more points is a line alone

/** Text of a value in one of Python's formats ".3f", ",.0f" and ".1%". */
function formatted(value, form) {
  const digits = Number(/\.(\d)/.exec(form)[1]);
  const isShare = form.endsWith("%");
  const text = (isShare ? 100 * value : value).toLocaleString("en", {
    minimumFractionDigits: digits, maximumFractionDigits: digits,
    useGrouping: form.startsWith(","), roundingMode: "halfEven",
  });
  return isShare ? `${text}%` : text;
}

/** Value, and its interval if it has one. */
function told([, value, low, high], form) {
  if (low == null && high == null) return formatted(value, form);
  const [from, to] = [low == null ? "-inf" : formatted(low, form), high == null ? "inf" : formatted(high, form)];
  return `${formatted(value, form)} (${from} to ${to})`;
}

/** Round levels from below `low` to above `high`, about four apart. */
function levelsOf(low, high) {
  const rough = (high - low || Math.abs(high) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  const count = Math.max(1, last - first);
  return Array.from({ length: count + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

function levelText(value, form) {
  if (form.endsWith("%")) return `${Number((100 * value).toPrecision(4))}%`;
  return value.toLocaleString("en", { notation: Math.abs(value) < 1e4 ? "standard" : "compact",
    maximumSignificantDigits: 4 });
}

class Chart {
  constructor(figure) {
    Object.assign(this, JSON.parse(figure.querySelector("script").textContent));
    this.svg = figure.querySelector("svg");
    this.at = figure.querySelector(".at");
    this.values = [...figure.querySelectorAll(".told b")];
    this.newestTexts = this.values.map((value) => value.textContent); // may name one bound alone
    const points = this.series.flat();
    this.numbers = [...new Set(points.map(([number]) => number))].sort((a, b) => a - b);
    const ends = points.flatMap((point) => point.slice(1)).filter((value) => value != null);
    const isShare = this.form.endsWith("%");
    this.levels = levelsOf(isShare ? 0 : Math.min(...ends), Math.max(...ends));
    if (isShare) this.levels = this.levels.filter((level) => level <= 1);
    this.shown = this.newest = this.numbers.length - 1;
    new ResizeObserver(() => this.draw()).observe(this.svg);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.show(this.newest));
    this.svg.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: this.shown - 1, ArrowRight: this.shown + 1, Home: 0, End: this.newest }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.show(Math.min(this.newest, Math.max(0, to)));
    });
  }

  x(number) {
    const [first, last] = [this.numbers[0], this.numbers[this.newest]];
    const share = last > first ? (number - first) / (last - first) : 0.5;
    return LEFT + 8 + share * (this.width - LEFT - RIGHT - 16);
  }

  y(value) {
    const [low, high] = [this.levels[0], this.levels.at(-1)];
    const share = (Math.min(high, Math.max(low, value)) - low) / (high - low);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
  }

  draw() {
    const width = this.svg.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren();
    const add = (name, attributes, text) => {
      element(name, attributes, this.svg).textContent = text ?? "";
    };
    for (const level of this.levels) {
      add("path", { class: "grid", d: `M${LEFT} ${this.y(level)}H${width - RIGHT}` });
      add("text", { x: LEFT - 6, y: this.y(level) + 4, "text-anchor": "end" }, levelText(level, this.form));
    }
    for (const number of this.numbersWithText()) {
      add("text", { x: this.x(number), y: HEIGHT - 6, "text-anchor": "middle" }, number);
    }
    for (const mark of this.marks) add("path", { class: "champion", d: `M${this.x(mark)} ${TOP}V${HEIGHT - BOTTOM}` });
    this.rule = element("path", { class: "rule" }, this.svg);
    this.series.forEach((points, index) => this.drawSeries(points, `s${index}`, add));
    this.show(this.shown);
  }

  numbersWithText() {
    const step = Math.ceil(this.numbers.length / Math.max(2, Math.floor(this.width / 70)));
    return this.numbers.filter((_, index) => (this.newest - index) % step === 0);
  }

  drawSeries(points, style, add) {
    const place = (number, value) => `${this.x(number).toFixed(1)} ${this.y(value).toFixed(1)}`;
    const band = points.filter(([, , low, high]) => low != null || high != null);
    const [bottom, top] = [this.levels[0], this.levels.at(-1)]; // of an interval without an end
    if (band.length) {
      const wide = band.length > 1 ? band : [band[0], band[0]].map(([number, ...ends], k) => [number + k * 0.04 - 0.02, ...ends]);
      const above = wide.map(([number, , , high]) => place(number, high ?? top));
      const below = wide.map(([number, , low]) => place(number, low ?? bottom)).reverse();
      add("path", { class: `band ${style}`, d: `M${[...above, ...below].join("L")}Z` });
    }
    add("path", { class: `curve ${style}`, d: `M${points.map(([number, value]) => place(number, value)).join("L")}` });
    if (points.length > MOST_DOTS) return;
    for (const [number, value] of points) add("circle", { class: `dot ${style}`, cx: this.x(number), cy: this.y(value), r: 2.8 });
  }

  point(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    const far = this.numbers.map((number) => Math.abs(this.x(number) - x));
    this.show(far.indexOf(Math.min(...far)));
  }

  show(index) {
    this.shown = index;
    const number = this.numbers[index];
    this.rule.setAttribute("d", `M${this.x(number)} ${TOP}V${HEIGHT - BOTTOM}`);
    this.at.textContent = `${this.over} ${number}`;
    this.series.forEach((points, k) => {
      const point = points.find(([each]) => each === number);
      this.values[k].textContent = index === this.newest ? this.newestTexts[k] : point ? told(point, this.form) : "–";
    });
  }
}

document.querySelectorAll("figure.chart").forEach((figure) => new Chart(figure));
