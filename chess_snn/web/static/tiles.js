// A board of 2048 from its rows, "2 . . 4/. . . ./. 8 . ./. . . 2".

/** Draw the board into `box`; its tiles have classes of their values. */
export function drawTiles(box, text) {
  const rows = text.replace("+", "").trim().split("/").map((row) => row.trim().split(/\s+/));
  const tiles = rows.flat().map((value) => {
    const tile = document.createElement("div");
    tile.className = value === "." ? "tile" : `tile t${Math.min(Number(value), 4096)}`;
    tile.dataset.digits = value.length;
    tile.textContent = value === "." ? "" : value;
    tile.setAttribute("aria-hidden", "true");
    return tile;
  });
  box.replaceChildren(...tiles);
}

/** The rows in words, for screen readers. */
export function tilesInWords(text) {
  return text.split("/").map((row) => row.trim().replaceAll(".", "empty")).join("; ");
}
