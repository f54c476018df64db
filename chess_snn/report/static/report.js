// The values of curves under the pointer, and games on a board. Below board.js in one module.
for (const svg of document.querySelectorAll("svg.chart")) {
  const points = JSON.parse(svg.dataset.points);
  const rule = svg.querySelector(".rule");
  const told = svg.parentElement.querySelector(".told");
  let at = points.length - 1;
  const show = (k) => {
    at = Math.max(0, Math.min(points.length - 1, k));
    rule.setAttribute("x1", points[at][0]);
    rule.setAttribute("x2", points[at][0]);
    told.textContent = points[at][1];
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const far = points.map((point) => Math.abs(point[0] - x));
    show(far.indexOf(Math.min(...far)));
  });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) { show(at + step); event.preventDefault(); }
  });
}

function tiles(place, cells) {
  const grid = document.createElement("div");
  grid.className = "tiles";
  grid.setAttribute("role", "img");
  grid.setAttribute("aria-label", `Board: ${cells.map((e) => (e ? 2 ** e : "empty")).join(", ")}`);
  for (const exponent of cells) {
    const tile = document.createElement("span");
    if (exponent) tile.textContent = 2 ** exponent;
    else tile.dataset.shade = "none";
    if (exponent > 9) tile.dataset.shade = "dark";
    tile.style.setProperty("--e", exponent);
    grid.append(tile);
  }
  place.replaceChildren(grid);
}

for (const game of document.querySelectorAll("article.game")) {
  const { kind, positions, moves } = JSON.parse(game.querySelector(".viewer").textContent);
  const place = game.querySelector(".place");
  const slider = game.querySelector("input");
  const told = game.querySelector(".told");
  const board = kind === "chess" ? new Board(place) : null;
  const show = (k) => {
    const at = Math.max(0, Math.min(positions.length - 1, k));
    const [name, uci] = at ? moves[at - 1] : ["start"];
    slider.value = at;
    told.textContent = `${name} (${at} of ${positions.length - 1})`;
    if (board) board.set({ fen: positions[at], lastMove: uci ?? null });
    else tiles(place, [...positions[at]].map((digit) => parseInt(digit, 16)));
  };
  const steps = { first: () => 0, back: (at) => at - 1, on: (at) => at + 1, last: () => Infinity };
  for (const button of game.querySelectorAll("button")) {
    button.addEventListener("click", () => show(steps[button.dataset.step](Number(slider.value))));
  }
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(positions.length - 1);
}
