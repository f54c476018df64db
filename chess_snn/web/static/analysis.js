// Results of a search: bars of win, draw and loss and of the value, candidate moves, a line.

import { counted } from "./words.js";

const percent = (share) => `${Math.round(100 * share)}%`;
const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(2)}`;

/** "+0.31", "mate in 3", or nothing without a visit; for the side to move. */
function valueText({ value_stm: value, mate }) {
  if (mate !== null) return mate > 0 ? `mate in ${mate}` : `mated in ${-mate}`;
  return value === null ? "" : signed(value);
}

function cell(row, text, name = "td") {
  const made = document.createElement(name);
  made.textContent = text;
  row.append(made);
  return made;
}

/** A cell with a number and a bar behind it of `share` in [0, 1]. */
function barCell(row, text, share) {
  const made = cell(row, text);
  made.className = "with-bar";
  made.style.setProperty("--share", `${Math.round(100 * share)}%`);
}

export class AnalysisView {
  /** `onHover(candidate or null)` hears which candidate is pointed at or focused. */
  constructor({ onHover, onChoose }) {
    Object.assign(this, { onHover, onChoose });
    const find = (id) => document.getElementById(id);
    this.wdl = find("wdl");
    this.eval = find("eval");
    this.body = find("candidates");
    this.line = find("line");
    this.note = find("search-note");
    this.pointed = null;
    this.body.addEventListener("pointerleave", () => this.point(null));
  }

  clear(note = "") {
    this.body.replaceChildren();
    this.line.textContent = "";
    this.note.textContent = note;
    this.point(null);
  }

  /** Show an `info` or `result` message. */
  show(message) {
    this.message = message;
    this.showBars(message);
    this.showCandidates(message.candidates);
    const more = message.others ? `, ${message.others} more moves` : "";
    const pace = message.seconds > 0 ? Math.round(message.visits / message.seconds) : 0;
    this.note.textContent = `${counted(message.visits, "visit")} in `
      + `${message.seconds.toFixed(1)} s${pace ? `, ${pace.toLocaleString("en")}/s` : ""}${more}. `
      + `The network alone expects ${message.network_wdl_white.map(percent).join(" / ")} `
      + "(White / draw / Black).";
    this.showLine();
  }

  showBars({ wdl_white: wdl, value_white: value }) {
    const [white, draw, black] = wdl;
    const names = { white, draw, black };
    for (const [name, share] of Object.entries(names)) {
      const part = this.wdl.querySelector(`.${name}`);
      part.style.flexGrow = share;
      part.textContent = share >= 0.08 ? percent(share) : "";
    }
    this.wdl.setAttribute("aria-label",
      `White ${percent(white)}, draw ${percent(draw)}, Black ${percent(black)}`);
    this.eval.setAttribute("aria-valuenow", value.toFixed(2));
    this.eval.querySelector(".fill").style.setProperty("--share", percent((1 + value) / 2));
    this.eval.querySelector(".number").textContent = Math.abs(value).toFixed(2);
    this.eval.classList.toggle("black-ahead", value < 0);
  }

  showCandidates(candidates) {
    const most = Math.max(1, ...candidates.map((move) => move.visits));
    const rows = candidates.map((move) => {
      const row = document.createElement("tr");
      const name = cell(row, "", "th");
      name.scope = "row";
      const button = document.createElement("button");
      button.textContent = move.san;
      button.className = "move";
      button.title = move.line;
      button.addEventListener("focus", () => this.point(move.uci));
      button.addEventListener("blur", () => this.point(null));
      button.addEventListener("click", () => this.onChoose(move));
      name.append(button);
      barCell(row, move.visits.toLocaleString("en"), move.visits / most);
      barCell(row, `${(100 * move.policy).toFixed(1)}%`, move.policy);
      cell(row, valueText(move));
      row.addEventListener("pointerenter", () => this.point(move.uci));
      row.dataset.move = move.uci;
      return row;
    });
    const focused = document.activeElement?.closest?.("#candidates tr")?.dataset.move;
    this.quiet = true; // moving the focus is not pointing elsewhere
    this.body.replaceChildren(...rows);
    if (focused) this.body.querySelector(`[data-move="${focused}"] button`)?.focus({ preventScroll: true });
    this.quiet = false;
    this.mark();
  }

  point(uci) {
    if (this.quiet || uci === this.pointed) return;
    this.pointed = uci;
    this.mark();
    this.showLine();
    this.onHover(this.candidate());
  }

  /** The candidate that is pointed at, or null. */
  candidate() {
    return this.message?.candidates.find((move) => move.uci === this.pointed) ?? null;
  }

  mark() {
    for (const row of this.body.children) {
      row.classList.toggle("pointed", row.dataset.move === this.pointed);
    }
  }

  showLine() {
    const shown = this.candidate() ?? this.message?.candidates[0];
    const text = this.body.children.length && shown ? shown.line : "";
    this.line.replaceChildren(...text.split(" ").flatMap((word) => {
      const part = document.createElement("span"); // "O-O" stays on one line
      part.textContent = word;
      return [part, " "];
    }));
  }
}
