// Moves on a Board by mouse, touch and keyboard. Only moves of a list from the server are offered.

import { SIDE, SQUARE, pieceName } from "./board.js";
import { counted } from "./words.js";

const FILES = "abcdefgh";

export class BoardInput {
  /**
   * Let people move on `board`, which lies in `box`. `onMove(from, to, isDragged)` gets a move that is
   * legal but for its promotion; a piece that was dragged stays where it was put down until `offer`
   * or another position. `say(text)` speaks to screen readers.
   */
  constructor(board, box, { onMove, say }) {
    Object.assign(this, { board, box, onMove, say });
    this.legal = new Map(); // square -> set of squares
    this.chosen = null;
    this.cursor = null;
    this.drag = null;
    box.tabIndex = 0;
    box.setAttribute("role", "application");
    box.setAttribute("aria-roledescription", "chess board");
    box.setAttribute("aria-label", "Chess board. Arrow keys move the cursor, Enter picks up a piece "
      + "and puts it down, Escape lets it go. Moves can also be typed below the board.");
    board.svg.addEventListener("pointerdown", (event) => this.press(event));
    board.svg.addEventListener("pointermove", (event) => this.move(event));
    board.svg.addEventListener("pointerup", (event) => this.release(event));
    board.svg.addEventListener("pointercancel", () => this.cancelDrag());
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("blur", () => { this.cursor = null; this.mark(); });
  }

  /** Offer the moves of `legal`, a list of {uci}; an empty list locks the board. */
  offer(legal) {
    this.legal = new Map();
    for (const { uci } of legal) {
      const from = uci.slice(0, 2);
      if (!this.legal.has(from)) this.legal.set(from, new Set());
      this.legal.get(from).add(uci.slice(2, 4));
    }
    this.cancelDrag();
    this.choose(null);
  }

  /** Offer nothing until `offer` is called; a piece that was put down stays there. */
  lock() {
    this.legal = new Map();
    this.drag = null;
    this.choose(null);
  }

  choose(square) {
    this.chosen = square && this.legal.has(square) ? square : null;
    this.mark();
  }

  mark() {
    this.board.marks = {};
    if (this.chosen) this.board.marks[this.chosen] = "chosen";
    if (this.cursor) {
      this.board.marks[this.cursor] = `${this.board.marks[this.cursor] ?? ""} cursor`;
    }
    this.board.update({ targets: this.chosen ? [...this.legal.get(this.chosen)] : [] });
  }

  /** Whether a piece was put down on `square`. */
  tryMove(square, isDragged = false) {
    if (!this.chosen || !this.legal.get(this.chosen)?.has(square)) return false;
    const from = this.chosen;
    if (isDragged) this.board.hold(from, this.board.corner(square));
    this.choose(null);
    this.onMove(from, square, isDragged);
    return true;
  }

  press(event) {
    if (event.button !== 0) return;
    const square = this.board.squareAt(event.clientX, event.clientY);
    if (!square || this.tryMove(square)) return;
    const again = this.chosen === square;
    this.choose(square);
    if (this.chosen) {
      this.board.svg.setPointerCapture(event.pointerId);
      this.drag = { from: square, again, x: event.clientX, y: event.clientY, moved: false };
    }
  }

  move(event) {
    if (!this.drag) return;
    const far = Math.hypot(event.clientX - this.drag.x, event.clientY - this.drag.y) > 4;
    this.drag.moved ||= far;
    if (!this.drag.moved) return;
    const box = this.board.svg.getBoundingClientRect();
    const corner = [event.clientX - box.left, event.clientY - box.top]
      .map((pixels) => (pixels * SIDE) / box.width - SQUARE / 2);
    this.board.hold(this.drag.from, corner);
  }

  release(event) {
    if (!this.drag) return;
    const { moved, again } = this.drag;
    this.drag = null;
    const square = this.board.squareAt(event.clientX, event.clientY);
    if (moved) {
      if (!square || !this.tryMove(square, true)) this.board.hold();
    } else if (again) {
      this.choose(null);
    }
  }

  cancelDrag() {
    this.drag = null;
    if (this.board.held) this.board.hold();
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (steps[event.key]) this.step(...steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.enter();
    else if (event.key === "Escape") this.choose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  step(dx, dy) {
    const sign = this.board.orientation === "white" ? 1 : -1;
    const from = this.cursor ?? (sign > 0 ? "e1" : "e8");
    const clamp = (value) => Math.min(7, Math.max(0, value));
    const file = clamp(FILES.indexOf(from[0]) + sign * dx);
    const rank = clamp(Number(from[1]) - 1 + sign * dy);
    this.cursor = this.cursor ? FILES[file] + (rank + 1) : from;
    this.mark();
    this.say(this.describe(this.cursor));
  }

  enter() {
    if (!this.cursor) {
      this.step(0, 0);
      return;
    }
    const square = this.cursor;
    if (this.tryMove(square)) return;
    this.choose(this.chosen === square ? null : square);
    const count = this.chosen ? this.legal.get(square).size : 0;
    this.say(this.chosen ? `${this.describe(square)} picked up, ${counted(count, "move")}` : "nothing to move");
  }

  describe(square) {
    const piece = this.board.pieces[square];
    const target = this.chosen && this.legal.get(this.chosen).has(square) ? ", can be reached" : "";
    return `${square}, ${piece ? pieceName(piece) : "empty"}${target}`;
  }
}
