// A chess board as SVG, drawn from the first field of a FEN. It imports nothing, so that a page can
// contain it whole; board.css has its colours. Squares are named as in chess: "e4".

export const SQUARE = 100; // units of the drawing
export const SIDE = 8 * SQUARE;
const SVG = "http://www.w3.org/2000/svg";
const NAMES = { p: "pawn", n: "knight", b: "bishop", r: "rook", q: "queen", k: "king" };
const MOVE_MS = 160;

// Our own pieces, each in a square of 100 units: outlines filled with the colour of the side, and
// thin lines ("detail") upon them.
const base = "M24 89 C24 82 28 79 33 78 H67 C72 79 76 82 76 89 Z";
const PIECES = {
  p: {
    outlines: ["M44 52 C44 64 35 68 32 79 H68 C65 68 56 64 56 52 Z", base,
      "M37 47 H63 C66 47 66 53 63 53 H37 C34 53 34 47 37 47 Z",
      "M50 21 A13.5 13.5 0 1 1 49.9 21 Z"],
    details: [],
  },
  n: {
    outlines: [base,
      "M32 79 C31 67 37 61 45 55 C49 52 50 48 49 44 C44 49 39 49 35 52 C33 56 29 58 25 56 "
      + "L20 51 C19 48 20 46 22 43 C27 36 29 31 34 25 C34 21 33 17 34 13 L43 19 "
      + "C62 19 73 33 73 56 C73 66 71 73 69 79 Z"],
    details: ["M37 31.5 l3.5 -2.5", "M25.5 48.5 l1.5 -1.5", "M52 25 C62 31 66 43 65 58"],
  },
  b: {
    outlines: ["M43 61 C42 69 36 72 33 79 H67 C64 72 58 69 57 61 Z", base,
      "M50 19 C38 29 31 38 33 48 C34 54 40 57 50 57 C60 57 66 54 67 48 C69 38 62 29 50 19 Z",
      "M37 56 H63 C66 56 66 62 63 62 H37 C34 62 34 56 37 56 Z",
      "M50 9.5 A5 5 0 1 1 49.9 9.5 Z"],
    details: ["M57 30 L49 42"],
  },
  r: {
    outlines: ["M36 42 L33 79 H67 L64 42 Z", base,
      "M27 19 H38 V26 H45 V19 H55 V26 H62 V19 H73 V36 L66 43 H34 L27 36 Z"],
    details: ["M34 36 H66", "M36 71.5 H64"],
  },
  q: {
    outlines: ["M35 64 C35 70 34 74 32 79 H68 C66 74 65 70 65 64 Z", base,
      "M16 31 L31 63 H69 L84 31 L68 46 L65.5 24 L50 43 L34.5 24 L32 46 Z",
      "M33 61 H67 C70 61 70 67 67 67 H33 C30 67 30 61 33 61 Z",
      "M15.5 23.5 A5 5 0 1 1 15.4 23.5 Z", "M34 16 A5 5 0 1 1 33.9 16 Z",
      "M66 16 A5 5 0 1 1 65.9 16 Z", "M84.5 23.5 A5 5 0 1 1 84.4 23.5 Z"],
    details: [],
  },
  k: {
    outlines: ["M35 64 C35 70 34 74 32 79 H68 C66 74 65 70 65 64 Z", base,
      "M46.5 9 H53.5 V15.5 H60 V22.5 H53.5 V34 H46.5 V22.5 H40 V15.5 H46.5 Z",
      "M50 40 C44 27 21 27 21 45 C21 54 29 57 32 63 H68 C71 57 79 54 79 45 C79 27 56 27 50 40 Z",
      "M33 61 H67 C70 61 70 67 67 67 H33 C30 67 30 61 33 61 Z"],
    details: ["M50 40 V61"],
  },
};

/** An element of SVG, at the end of `parent`. */
export function element(name, attributes = {}, parent = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

/** The pieces of a FEN by square: {e1: "K", …}. Impossible characters are left out. */
function readPieces(fen) {
  const pieces = {};
  fen.split(" ")[0].split("/").slice(0, 8).forEach((row, index) => {
    let file = 0;
    for (const character of row) {
      if (/[1-8]/.test(character)) file += Number(character);
      else if (NAMES[character.toLowerCase()] && file < 8) {
        pieces["abcdefgh"[file++] + (8 - index)] = character;
      }
    }
  });
  return pieces;
}

/** "white knight" of "N". */
export function pieceName(piece) {
  return `${piece === piece.toUpperCase() ? "white" : "black"} ${NAMES[piece.toLowerCase()]}`;
}

/** The drawing of one piece, for a board or a button. */
export function drawPiece(piece, parent = null) {
  const group = element("g", { class: `piece ${pieceName(piece).split(" ")[0]}` }, parent);
  const drawing = PIECES[piece.toLowerCase()];
  for (const d of drawing.outlines) element("path", { class: "outline", d }, group);
  for (const d of drawing.details) element("path", { class: "detail", d }, group);
  return group;
}

export class Board {
  /**
   * Draw into `container`. `label` is what screen readers call the board; `orientation` is the side
   * at the bottom, "white" or "black".
   */
  constructor(container, { orientation = "white", label = "Chess board" } = {}) {
    this.label = label;
    this.orientation = orientation;
    this.marks = {}; // classes of squares that the board does not set itself, by square
    this.held = null; // a piece that is dragged: its square, and its corner meanwhile
    this.svg = element("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "board", role: "img" });
    this.layers = {};
    for (const layer of ["squares", "marks", "coordinates", "pieces", "targets", "arrows", "held"]) {
      this.layers[layer] = element("g", { class: layer }, this.svg);
    }
    container.append(this.svg);
    this.set({ fen: "8/8/8/8/8/8/8/8 w - - 0 1" });
  }

  /**
   * Show a position; what is left out of `changes` is empty. `fen`; `lastMove` and `arrows` in
   * UCI ("e2e4"), an arrow also as {move, weight} with a weight in [0, 1]; `targets` are squares
   * with a dot; `check` is the square of a king in check; `heat` shades squares by shares in [0, 1].
   * With `slide` the last move is seen to move.
   */
  set({ fen, lastMove = null, targets = [], arrows = [], check = null, heat = {}, slide = false }) {
    this.position = { fen, lastMove, targets, arrows, check, heat };
    this.held = null;
    this.draw();
    if (slide && lastMove) this.slide(lastMove);
  }

  /** Change parts of what is shown, as {targets: [...]}. */
  update(changes) {
    this.position = { ...this.position, ...changes };
    this.draw();
  }

  /** Draw the piece of `square` with its upper left corner at [x, y]; without a square none is held. */
  hold(square = null, corner = null) {
    const isMoved = square && this.held?.square === square;
    this.held = square && { square, corner };
    if (isMoved) this.layers.held.firstChild?.setAttribute("transform", `translate(${corner.join(" ")})`);
    else this.draw();
  }

  flip() {
    this.orientation = this.orientation === "white" ? "black" : "white";
    this.draw();
  }

  /** The upper left corner [x, y] of a square. */
  corner(square) {
    const file = square.charCodeAt(0) - 97;
    const rank = Number(square[1]) - 1;
    const isWhite = this.orientation === "white";
    return [(isWhite ? file : 7 - file) * SQUARE, (isWhite ? 7 - rank : rank) * SQUARE];
  }

  /** The square at a place of the window, or null. */
  squareAt(clientX, clientY) {
    const box = this.svg.getBoundingClientRect();
    let file = Math.floor(((clientX - box.left) / box.width) * 8);
    let rank = 7 - Math.floor(((clientY - box.top) / box.height) * 8);
    if (this.orientation === "black") [file, rank] = [7 - file, 7 - rank];
    return file >= 0 && file < 8 && rank >= 0 && rank < 8 ? "abcdefgh"[file] + (rank + 1) : null;
  }

  /** Draw all layers anew: a board has at most 200 elements. */
  draw() {
    for (const layer of Object.values(this.layers)) layer.replaceChildren();
    const { fen, lastMove, targets, arrows, check, heat } = this.position;
    this.pieces = readPieces(fen);
    this.drawSquares();
    const marks = { ...this.marks };
    const add = (square, mark) => { marks[square] = `${marks[square] ?? ""} ${mark}`; };
    if (lastMove) [lastMove.slice(0, 2), lastMove.slice(2, 4)].forEach((s) => add(s, "last"));
    if (check) add(check, "check");
    for (const [square, mark] of Object.entries(marks)) this.drawMark(square, mark.trim());
    for (const [square, share] of Object.entries(heat)) {
      this.drawMark(square, "heat").setAttribute("opacity", 0.15 + 0.75 * share);
    }
    for (const square of targets) this.drawTarget(square);
    for (const square of Object.keys(this.pieces)) this.drawPieceOf(square);
    for (const arrow of arrows) this.drawArrow(typeof arrow === "string" ? { move: arrow } : arrow);
    this.svg.setAttribute("aria-label", `${this.label}: ${this.describe()}`);
  }

  drawSquares() {
    for (let file = 0; file < 8; file++) {
      for (let rank = 0; rank < 8; rank++) {
        const name = "abcdefgh"[file] + (rank + 1);
        const [x, y] = this.corner(name);
        const shade = (file + rank) % 2 ? "light" : "dark";
        element("rect", { class: `square ${shade}`, x, y, width: SQUARE, height: SQUARE },
          this.layers.squares);
        if (y === SIDE - SQUARE) this.coordinate(name[0], x + SQUARE - 6, SIDE - 7, shade, "end");
        if (x === 0) this.coordinate(name[1], 6, y + 24, shade, "start");
      }
    }
  }

  drawPieceOf(square) {
    const isHeld = this.held?.square === square;
    const drawn = drawPiece(this.pieces[square]);
    const [x, y] = isHeld ? this.held.corner : this.corner(square);
    drawn.setAttribute("transform", `translate(${x} ${y})`);
    drawn.dataset.square = square;
    this.layers[isHeld ? "held" : "pieces"].append(drawn);
  }

  coordinate(text, x, y, shade, anchor) {
    const drawn = element("text", { class: `coordinate on-${shade}`, x, y, "text-anchor": anchor },
      this.layers.coordinates);
    drawn.textContent = text;
  }

  drawMark(square, mark) {
    const [x, y] = this.corner(square);
    return element("rect", { class: `mark ${mark}`, x, y, width: SQUARE, height: SQUARE },
      this.layers.marks);
  }

  drawTarget(square) {
    const [x, y] = this.corner(square);
    const centre = { cx: x + SQUARE / 2, cy: y + SQUARE / 2 };
    const shape = this.pieces[square] ? { class: "target capture", r: 44 } : { class: "target", r: 15 };
    element("circle", { ...centre, ...shape }, this.layers.targets);
  }

  drawArrow({ move, weight = 1 }) {
    const [[x1, y1], [x2, y2]] = [move.slice(0, 2), move.slice(2, 4)]
      .map((square) => this.corner(square).map((value) => value + SQUARE / 2));
    const length = Math.hypot(x2 - x1, y2 - y1);
    if (length === 0) return;
    const width = 8 + 12 * weight;
    const head = 2.4 * width;
    const turn = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    const end = length - 12;
    const neck = end - head;
    element("path", {
      class: "arrow",
      d: `M24 ${-width / 2} H${neck} V${-head / 1.8} L${end} 0 L${neck} ${head / 1.8} `
        + `V${width / 2} H24 Z`,
      transform: `translate(${x1} ${y1}) rotate(${turn})`,
      opacity: 0.35 + 0.45 * weight,
    }, this.layers.arrows);
  }

  /** Let the piece at the end of `move` be seen to come from its beginning. */
  slide(move) {
    const drawn = this.layers.pieces.querySelector(`[data-square="${move.slice(2, 4)}"]`);
    const isStill = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!drawn || isStill) return;
    const [[x1, y1], [x2, y2]] = [move.slice(0, 2), move.slice(2, 4)].map((s) => this.corner(s));
    drawn.animate(
      [{ transform: `translate(${x1}px, ${y1}px)` }, { transform: `translate(${x2}px, ${y2}px)` }],
      { duration: MOVE_MS, easing: "ease-out" },
    );
  }

  /** The pieces in words, for screen readers: "white king e1, rook h1; black king e8". */
  describe() {
    const sides = { white: [], black: [] };
    for (const [square, piece] of Object.entries(this.pieces)) {
      const [side, name] = pieceName(piece).split(" ");
      sides[side].push(`${name} ${square}`);
    }
    return Object.entries(sides).filter(([, list]) => list.length)
      .map(([side, list]) => `${side} ${list.join(", ")}`).join("; ");
  }
}
