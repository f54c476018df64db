// The page of chess: a game of a person with a network, and what the network sees in it. The game
// is here alone: every request to the server has its start and its moves.

import { AnalysisView } from "./analysis.js";
import { BoardInput } from "./board-input.js";
import { Board } from "./board.js";
import { Clock, clockText } from "./clock.js";
import { ChessDialogs } from "./dialogs.js";
import { drawMoves, firstNumber } from "./moves.js";
import { moveInWords, say } from "./speech.js";
import { SpikesView } from "./spikes.js";

const SHARE_OF_CLOCK = 1 / 30; // that the network takes for a move
const LEAST_THINKING_S = 0.05;

const find = (id) => document.getElementById(id);
const other = (side) => (side === "white" ? "black" : "white");
const title = (side) => side[0].toUpperCase() + side.slice(1);

export class ChessPage {
  constructor(connection) {
    this.connection = connection;
    this.human = "white"; // or "black", or "both"
    this.game = { start: null, moves: [] };
    this.index = 0; // moves on the board
    this.names = { white: "", black: "" }; // of an imported game, where they are known
    this.result = "*"; // of an imported game, until a move is made or taken back
    this.verdict = null; // how the game ended beside the rules: {reason, result}
    this.searchNumber = 0;
    this.showNumber = 0;
    this.sans = []; // of all moves
    this.board = new Board(find("board"));
    this.board.svg.setAttribute("aria-hidden", "true"); // the box around it speaks
    this.input = new BoardInput(this.board, find("board"), {
      say, onMove: (from, to) => this.choose(from, to),
    });
    this.analysis = new AnalysisView({
      onHover: () => this.drawArrows(), onChoose: (move) => this.playFromList(move.uci),
    });
    this.spikes = new SpikesView(find("chess-spikes"), { onTile: (tile) => this.heat(tile) });
    this.dialogs = new ChessDialogs(this);
    this.listen();
  }

  listen() {
    const steps = { first: () => 0, previous: () => this.index - 1, next: () => this.index + 1,
      last: () => this.game.moves.length };
    for (const [id, to] of Object.entries(steps)) find(id).addEventListener("click", () => this.go(to()));
    find("take-back").addEventListener("click", () => this.takeBack());
    find("flip").addEventListener("click", () => this.flip());
    find("network").addEventListener("change", () => this.think());
    find("budget").addEventListener("change", () => this.think());
    find("analyse").addEventListener("change", () => this.think());
    find("move-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.typed(find("move").value);
    });
    find("moves").addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.go(this.index + by);
    });
  }

  get atEnd() {
    return this.index === this.game.moves.length;
  }

  get isHumansTurn() {
    return this.human === "both" || this.position?.turn === this.human;
  }

  /** Whether a move can be made on the board, in the list or in writing. */
  get mayMove() {
    return this.isHumansTurn && !this.over && (this.atEnd || this.human === "both");
  }

  /** How the game ended, or null; only at its newest position beside the rules. */
  get over() {
    return this.position?.over ?? (this.atEnd ? this.verdict : null);
  }

  newGame(colour, clock) {
    const drawn = Math.random() < 0.5 ? "white" : "black";
    this.human = colour === "random" ? drawn : colour;
    this.load({ start: null, moves: [] });
    if (clock) {
      this.clock = new Clock(clock, {
        onTick: () => this.showPlayers(), onFlag: (side) => this.flag(side),
      });
    }
    if (this.human !== "both" && this.board.orientation !== this.human) this.board.flip();
    this.show(0);
  }

  /** Take the place of the game by another one, without showing it yet. */
  load({ start, moves, white = "", black = "", result = "*" }) {
    this.clock?.close();
    this.clock = null;
    this.game = { start, moves: [...moves] };
    Object.assign(this, { names: { white, black }, result });
    this.verdict = null;
    this.spikes.expect();
  }

  /** Show the position after `index` moves. */
  async show(index, { slide = false, spoken = false } = {}) {
    const asked = ++this.showNumber;
    this.searchNumber++; // what is being searched is of another position
    this.connection.stop();
    const moves = this.game.moves.slice(0, index);
    let position;
    try {
      position = await this.connection.ask("position", {
        game: { kind: "chess", start: this.game.start, moves },
      });
    } catch (error) {
      this.complain(error);
      return false;
    }
    if (asked !== this.showNumber) return true; // another one was asked for meanwhile
    this.index = index;
    this.position = position;
    if (this.atEnd) this.sans = position.san;
    this.board.set({ fen: position.fen, lastMove: position.last, check: position.check, slide });
    this.analysis.clear();
    this.showAll();
    if (spoken && position.san.length) {
      const mover = title(other(position.turn));
      say(`${mover}: ${moveInWords(position.san.at(-1))}${this.over ? `. ${this.ending()}` : ""}`);
    }
    this.think();
    return true;
  }

  showAll() {
    this.input.offer(this.mayMove ? this.position.legal : []);
    drawMoves(find("moves"), this.sans, {
      start: this.game.start, index: this.index, onGo: (index) => this.go(index),
    });
    this.showPlayers();
    find("take-back").disabled = this.game.moves.length <= this.firstOwnMove();
    for (const id of ["first", "previous"]) find(id).disabled = this.index === 0;
    for (const id of ["next", "last"]) find(id).disabled = this.atEnd;
    find("status").textContent = this.statusText();
  }

  statusText() {
    if (this.over) return this.ending();
    if (!this.atEnd) return "An earlier position";
    const who = this.human === "both" || !this.isHumansTurn ? title(this.position.turn) : "You";
    const verb = who === "You" ? "are" : "is";
    return `${who} ${verb} to move${this.position.check ? ", in check" : ""}`;
  }

  ending() {
    const { reason, result } = this.over;
    const winner = { "1-0": "White wins", "0-1": "Black wins" }[result] ?? "Drawn";
    return `${winner}: ${reason}. ${result.replace("1/2-1/2", "½–½")}`;
  }

  complain(error) {
    find("status").textContent = error.message;
    say(error.message);
  }

  /** A piece was moved on the board; ask to what a pawn promotes. */
  async choose(from, to) {
    const fits = this.position.legal.filter(({ uci }) => uci.startsWith(from + to));
    const move = fits.length > 1 ? await this.dialogs.promote(fits, this.position.turn) : fits[0];
    if (move) this.play(move.uci);
  }

  /** A move was typed, as people or as engines write it. */
  typed(text) {
    const plain = (san) => san.replace(/[+#=x-]/g, "").replaceAll("0", "O");
    const wanted = text.trim();
    const legal = this.mayMove ? this.position.legal : [];
    const fits = legal.filter(({ uci, san }) => uci === wanted.toLowerCase()
      || plain(san) === plain(wanted));
    if (fits.length === 1) {
      find("move").value = "";
      this.play(fits[0].uci);
    } else if (wanted) {
      this.complain(new Error(legal.length || this.isHumansTurn
        ? `“${wanted}” is not a legal move here` : "it is not your turn"));
    }
  }

  playFromList(uci) {
    if (this.mayMove) this.play(uci);
  }

  async play(uci) {
    const [moves, result] = [this.game.moves, this.result];
    this.game.moves = [...moves.slice(0, this.index), uci];
    this.result = "*";
    if (!await this.show(this.index + 1, { slide: true, spoken: true })) {
      this.game.moves = moves;
      this.result = result;
    } else if (this.clock && !this.over) this.clock.start(this.position.turn, true);
    if (this.over) this.clock?.stop();
  }

  go(index) {
    if (index < 0 || index > this.game.moves.length || index === this.index) return;
    this.show(index, { slide: index === this.index + 1, spoken: true });
  }

  /** Take the person's last move back, and the answer to it. */
  takeBack() {
    const { moves } = this.game;
    let keep = moves.length - 1;
    if (this.human !== "both" && !this.verdict && this.atEnd && this.isHumansTurn) keep--;
    if (keep < this.firstOwnMove()) return;
    this.verdict = null;
    this.result = "*";
    this.game.moves = moves.slice(0, keep);
    say("taken back");
    this.show(this.game.moves.length).then(() => this.clock?.start(this.position.turn, false));
  }

  /** The place of the person's first move in the game: 1 where the network begins. */
  firstOwnMove() {
    const beginner = firstNumber(this.game.start).offset ? "black" : "white";
    return this.human === "both" || this.human === beginner ? 0 : 1;
  }

  flip() {
    this.board.flip();
    this.showPlayers();
  }

  flag(side) {
    this.connection.stop();
    this.searchNumber++;
    this.verdict = { reason: "time", result: side === "white" ? "0-1" : "1-0" };
    this.showAll();
    say(this.ending());
  }

  /** Search the position shown, for its answer or to show what the network sees. */
  async think() {
    const number = ++this.searchNumber;
    this.connection.stop();
    if (!this.position || this.over) return;
    const plays = this.atEnd && !this.isHumansTurn;
    if (!plays && !find("analyse").checked) {
      this.analysis.clear("The search rests while it is your move.");
      return;
    }
    if (!find("network").value) return;
    this.spikes.expect();
    const isCurrent = () => number === this.searchNumber;
    const game = { kind: "chess", start: this.game.start, moves: this.game.moves.slice(0, this.index) };
    const seconds = plays && this.clock
      ? Math.max(LEAST_THINKING_S, (this.clock.left[this.position.turn] / 1000) * SHARE_OF_CLOCK) : null;
    find("search-note").textContent = "searching …";
    try {
      const result = await this.connection.ask("search", {
        game, seconds, model: find("network").value, simulations: Number(find("budget").value),
      }, {
        onInfo: (info) => { if (isCurrent()) this.found(info); },
        onSpikes: (header, bytes) => { if (isCurrent()) this.spikes.receive(header, bytes); },
      });
      if (!isCurrent()) return;
      this.found(result);
      if (plays) await this.play(result.candidates[0].uci);
    } catch (error) {
      if (isCurrent()) {
        this.analysis.clear(error.message);
        if (plays) this.complain(error);
      }
    }
  }

  found(message) {
    this.analysis.show(message);
    this.drawArrows();
  }

  /** The best moves as arrows, or the line of the candidate that is pointed at. */
  drawArrows() {
    const pointed = this.analysis.candidate();
    const candidates = this.analysis.body.children.length ? this.analysis.message.candidates : [];
    const most = Math.max(1, ...candidates.map((move) => move.visits));
    const arrows = candidates.length && pointed
      ? pointed.line_uci.slice(0, 4).map((move, i) => ({ move, weight: 1 - 0.28 * i }))
      : candidates.slice(0, 3)
        .map((move) => ({ move: move.uci, weight: (move.visits || move.policy * most) / most }))
        .filter(({ weight }) => weight > 0.1).reverse();
    this.board.update({ arrows });
  }

  /** Shade the squares on which a channel fires. */
  heat(tile) {
    const heat = {};
    tile?.cells.forEach((count, k) => {
      const square = tile.flips ? k ^ 56 : k;
      if (count) heat["abcdefgh"[square % 8] + (1 + (square >> 3))] = count / tile.most;
    });
    this.board.update({ heat, arrows: [] });
    if (!tile) this.drawArrows();
  }

  showPlayers() {
    const network = find("network").selectedOptions[0]?.textContent ?? "the network";
    for (const place of ["top", "bottom"]) {
      const side = place === "bottom" ? this.board.orientation : other(this.board.orientation);
      const row = find(`player-${place}`);
      row.dataset.side = side;
      row.classList.toggle("to-move", this.position?.turn === side && !this.over);
      row.querySelector(".name").textContent = this.human === "both"
        ? this.names[side] || title(side) : this.human === side ? "You" : network;
      const clock = row.querySelector(".clock");
      clock.hidden = !this.clock;
      if (this.clock) clock.textContent = clockText(this.clock.left[side]);
    }
  }
}
