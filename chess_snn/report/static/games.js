// Games on a board with step buttons. Below board.js in one module.
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
  const { kind, positions, moves } = JSON.parse(game.querySelector("script").textContent);
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
