// The page of 2048: arrow keys, and hints by a network. The game is here alone; the server moves the
// tiles, and the seed and the ply decide the new ones.

import { say } from "./speech.js";
import { SpikesView } from "./spikes.js";
import { drawTiles, tilesInWords } from "./tiles.js";

const KEYS = { ArrowLeft: "left", ArrowUp: "up", ArrowRight: "right", ArrowDown: "down" };
const MOST_TAKEN_BACK = 2000; // boards that are remembered
const LEAST_SWIPE = 24; // pixels
const ARROWS = { left: "←", up: "↑", right: "→", down: "↓" };

const find = (id) => document.getElementById(id);

export class TilesPage {
  constructor(connection) {
    this.connection = connection;
    this.boards = []; // {board, ply, score, largest, legal, over}, the newest last
    this.searchNumber = 0;
    this.isAuto = false;
    this.spikes = new SpikesView(find("tiles-spikes"), { hasLines: false });
    find("tiles-new").addEventListener("click", () => this.newGame());
    find("tiles-back").addEventListener("click", () => this.takeBack());
    find("tiles-auto").addEventListener("click", () => this.setAuto(!this.isAuto));
    for (const id of ["tiles-network", "tiles-budget"]) {
      find(id).addEventListener("change", () => this.think());
    }
    for (const button of document.querySelectorAll("[data-move]")) {
      button.addEventListener("click", () => this.byHand(button.dataset.move));
    }
    this.listenToSwipes(find("tiles-board"));
    document.addEventListener("keydown", (event) => {
      const isOurs = !find("tiles").hidden && !event.target.closest?.("select, input, [role=tablist], .layers");
      if (!isOurs || !KEYS[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.byHand(KEYS[event.key]);
    });
  }

  /** Fingers and mice slide the tiles. */
  listenToSwipes(box) {
    let from = null;
    box.addEventListener("pointerdown", (event) => {
      from = event;
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointercancel", () => { from = null; });
    box.addEventListener("pointerup", (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.clientX, event.clientY - from.clientY];
      from = null;
      if (Math.max(Math.abs(dx), Math.abs(dy)) < LEAST_SWIPE) return;
      const isFlat = Math.abs(dx) > Math.abs(dy);
      this.byHand(isFlat ? (dx < 0 ? "left" : "right") : (dy < 0 ? "up" : "down"));
    });
  }

  byHand(move) {
    this.setAuto(false);
    this.move(move);
  }

  /** The page is shown: begin a game if there is none. */
  open() {
    if (!this.boards.length) this.newGame();
    find("tiles-board").focus();
  }

  get now() {
    return this.boards.at(-1);
  }

  async newGame() {
    this.setAuto(false);
    this.seed = Math.floor(Math.random() * 2 ** 31);
    this.boards = [];
    await this.ask({ start: null, ply: 0, moves: [] });
  }

  /** Ask for the board after the moves of `fields`; null after an error, which is shown. */
  async ask(fields) {
    try {
      const answer = await this.connection.ask("position", {
        game: { kind: "2048", seed: this.seed, ...fields },
      });
      const score = (this.now?.score ?? 0) + answer.points;
      this.boards.push({ ...answer, score });
      this.boards.splice(0, this.boards.length - MOST_TAKEN_BACK);
      this.show();
      return answer;
    } catch (error) {
      find("tiles-status").textContent = error.message;
      return null;
    }
  }

  async move(move) {
    if (this.isBusy || !this.now?.legal.includes(move)) return;
    this.isBusy = true; // keys come faster than answers
    try {
      const { board, ply } = this.now;
      if (await this.ask({ start: board, ply, moves: [move] })) {
        say(`${move}. ${tilesInWords(this.now.board)}`);
      }
    } finally {
      this.isBusy = false;
    }
  }

  takeBack() {
    this.setAuto(false);
    if (this.boards.length < 2) return;
    this.boards.pop();
    this.show();
  }

  setAuto(isAuto) {
    const begins = isAuto && !this.isAuto;
    this.isAuto = isAuto;
    find("tiles-auto").setAttribute("aria-pressed", isAuto);
    find("tiles-auto").textContent = isAuto ? "Stop the network" : "Let the network play";
    if (begins) this.think();
  }

  show() {
    const { board, score, largest, ply, over } = this.now;
    drawTiles(find("tiles-board"), board);
    find("tiles-score").textContent = Math.round(score).toLocaleString("en");
    find("tiles-largest").textContent = largest.toLocaleString("en");
    find("tiles-ply").textContent = ply.toLocaleString("en");
    find("tiles-back").disabled = this.boards.length < 2;
    find("tiles-status").textContent = over ? "The game is over." : "";
    for (const button of document.querySelectorAll("[data-move]")) {
      button.disabled = !this.now.legal.includes(button.dataset.move);
    }
    if (over) this.setAuto(false);
    this.think();
  }

  /** Ask the network for a hint, and play it in its own game. */
  async think() {
    const number = ++this.searchNumber;
    const isCurrent = () => number === this.searchNumber;
    const model = find("tiles-network").value;
    if (!this.now || this.now.over || !model) {
      this.showHints([], "");
      return;
    }
    this.spikes.expect();
    try {
      const result = await this.connection.ask("search", {
        game: { kind: "2048", seed: this.seed, start: this.now.board, ply: this.now.ply, moves: [] },
        model, simulations: Number(find("tiles-budget").value),
      }, { onSpikes: (header, bytes) => { if (isCurrent()) this.spikes.receive(header, bytes); } });
      if (!isCurrent()) return;
      const points = Math.round(result.score_to_go).toLocaleString("en");
      this.showHints(result.candidates, `It expects ${points} more points.`);
      if (this.isAuto) this.move(result.candidates[0].move);
    } catch (error) {
      if (isCurrent()) {
        this.showHints([], error.message);
        this.setAuto(false);
      }
    }
  }

  showHints(candidates, note) {
    find("tiles-note").textContent = note;
    find("tiles-candidates").replaceChildren(...candidates.map((move) => {
      const row = document.createElement("tr");
      const texts = [
        `${ARROWS[move.move]} ${move.move}`, move.visits.toLocaleString("en"),
        `${(100 * move.policy).toFixed(1)}%`,
        move.points === null ? "" : Math.round(move.points).toLocaleString("en"),
      ];
      for (const text of texts) row.insertCell().textContent = text;
      return row;
    }));
  }
}
