// The page of chess: a game of a person with a network, and what the network sees in it. The game
// is here alone: every request to the server has its start and its moves.

import { AnalysisView } from "./analysis.js";
import { BoardInput } from "./board-input.js";
import { Board } from "./board.js";
import { Clock, clockText } from "./clock.js";
import { ChessDialogs } from "./dialogs.js";
import { ChessGame, other, title } from "./game.js";
import { drawMoves } from "./moves.js";
import { moveInWords, say } from "./speech.js";
import { SpikesView } from "./spikes.js";

const SHARE_OF_CLOCK = 1 / 30; // that the network takes for a move
const LEAST_THINKING_S = 0.05;

const find = (id) => document.getElementById(id);

export class ChessPage {
  constructor(connection) {
    this.connection = connection;
    this.game = new ChessGame();
    this.searchNumber = 0;
    this.showNumber = 0;
    this.isAsking = false; // for the position to show
    this.board = new Board(find("board"));
    this.board.svg.setAttribute("aria-hidden", "true"); // the box around it speaks
    this.input = new BoardInput(this.board, find("board"), {
      say, onMove: (from, to, isDragged) => this.choose(from, to, isDragged),
    });
    this.analysis = new AnalysisView({
      onHover: () => this.drawArrows(), onChoose: (move) => { if (this.mayMove) this.play(move.uci); },
    });
    this.spikes = new SpikesView(find("chess-spikes"), { onTile: (tile) => this.heat(tile) });
    this.dialogs = new ChessDialogs(this);
    this.listen();
  }

  listen() {
    const steps = { first: () => 0, previous: () => this.game.index - 1, next: () => this.game.index + 1,
      last: () => this.game.moves.length };
    for (const [id, to] of Object.entries(steps)) find(id).addEventListener("click", () => this.go(to()));
    find("take-back").addEventListener("click", () => this.takeBack());
    find("flip").addEventListener("click", () => this.flip());
    for (const id of ["network", "budget", "analyse"]) {
      find(id).addEventListener("change", () => this.think());
    }
    find("network").addEventListener("change", () => this.showPlayers());
    find("move-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.typed(find("move").value.trim());
    });
    find("moves").addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.go(this.game.index + by);
    });
  }

  /** Whether a move can be made on the board, in the list or in writing. */
  get mayMove() {
    const { game } = this;
    return !this.isAsking && game.isHumansTurn && !game.over && (game.atEnd || game.human === "both");
  }

  newGame(colour, clock) {
    const drawn = Math.random() < 0.5 ? "white" : "black";
    const human = colour === "random" ? drawn : colour;
    this.load({ human });
    if (clock) {
      this.clock = new Clock(clock, {
        onTick: () => this.showPlayers(), onFlag: (side) => this.flag(side),
      });
    }
    if (human !== "both" && this.board.orientation !== human) this.board.flip();
    this.show(0);
  }

  /** Take the place of the game by another one, without showing it yet. */
  load(facts) {
    this.clock?.close();
    this.clock = null;
    this.game = new ChessGame(facts);
    this.spikes.expect();
  }

  /**
   * Show the position after `index` moves. The board is locked until the server has described it; if
   * it cannot, `undo` is called. Returns whether it is shown, and no other one was asked for meanwhile.
   */
  async show(index, { slide = false, spoken = false, undo } = {}) {
    const asked = ++this.showNumber;
    const { game } = this;
    this.searchNumber++; // what is being searched is of another position
    this.connection.stop();
    this.wait(true);
    let position;
    try {
      position = await this.connection.ask("position", { game: game.upTo(index) });
    } catch (error) {
      if (asked !== this.showNumber) return false;
      undo?.();
      this.wait(false);
      if (game.position) this.showAll();
      this.complain(error);
      return false;
    }
    if (asked !== this.showNumber) return false;
    game.stand(index, position);
    this.wait(false);
    this.board.set({ fen: position.fen, lastMove: position.last, check: position.check, slide });
    this.analysis.clear();
    this.showAll();
    if (spoken && position.san.length) {
      const mover = title(other(position.turn));
      say(`${mover}: ${moveInWords(position.san.at(-1))}${game.over ? `. ${game.ending}` : ""}`);
    }
    this.think();
    return true;
  }

  wait(isAsking) {
    this.isAsking = isAsking;
    find("board").setAttribute("aria-busy", isAsking);
    if (isAsking) this.input.lock();
  }

  showAll() {
    const { game } = this;
    this.input.offer(this.mayMove ? game.position.legal : []);
    drawMoves(find("moves"), game.sans, {
      start: game.start, index: game.index, onGo: (index) => this.go(index),
    });
    this.showPlayers();
    find("take-back").disabled = game.moves.length <= game.firstOwnMove;
    for (const id of ["first", "previous"]) find(id).disabled = game.index === 0;
    for (const id of ["next", "last"]) find(id).disabled = game.atEnd;
    find("status").textContent = game.status;
  }

  complain(error) {
    find("status").textContent = error.message;
    say(error.message);
  }

  /** A piece was moved on the board; ask to what a pawn promotes. */
  async choose(from, to, isDragged) {
    const { legal, turn } = this.game.position;
    const fits = legal.filter(({ uci }) => uci.startsWith(from + to));
    const move = fits.length > 1 ? await this.dialogs.promote(fits, turn) : fits[0];
    if (move) this.play(move.uci, !isDragged);
    else this.input.cancelDrag();
  }

  typed(text) {
    const fits = this.mayMove ? this.game.movesLike(text) : [];
    if (fits.length === 1) {
      find("move").value = "";
      this.play(fits[0].uci);
    } else if (text) {
      this.complain(new Error(this.mayMove
        ? `“${text}” is not a legal move here` : "no move can be made now"));
    }
  }

  play(uci, slide = true) {
    return this.change(this.game.index, uci, { slide, spoken: true });
  }

  /** Change the game as its `change` does, and show its end; returns whether that was done. */
  async change(count, uci = null, options = {}) {
    const { game } = this;
    const undo = game.change(count, uci);
    if (!await this.show(game.moves.length, { ...options, undo })) return false;
    if (game.over) this.clock?.stop();
    else this.clock?.start(game.position.turn, uci !== null);
    return true;
  }

  go(index) {
    const { game } = this;
    if (index < 0 || index > game.moves.length || index === game.index) return;
    this.show(index, { slide: index === game.index + 1, spoken: true });
  }

  /** Take the person's last move back, and the answer to it. */
  async takeBack() {
    const kept = this.game.keptMoves;
    if (kept >= this.game.firstOwnMove && await this.change(kept)) say("taken back");
  }

  flip() {
    this.board.flip();
    this.showPlayers();
  }

  flag(side) {
    this.connection.stop();
    this.searchNumber++;
    this.game.verdict = { reason: "time", result: side === "white" ? "0-1" : "1-0" };
    this.showAll();
    say(this.game.ending);
  }

  /** Search the position shown, for its answer or to show what the network sees. */
  async think() {
    const { game } = this;
    const number = ++this.searchNumber;
    this.connection.stop();
    if (!game.position || game.over) return;
    const plays = game.atEnd && !game.isHumansTurn;
    if (!plays && !find("analyse").checked) {
      this.analysis.clear("The search rests while it is your move.");
      return;
    }
    if (!find("network").value) return;
    this.spikes.expect();
    const isCurrent = () => number === this.searchNumber;
    const seconds = plays && this.clock
      ? Math.max(LEAST_THINKING_S, (this.clock.left[game.position.turn] / 1000) * SHARE_OF_CLOCK) : null;
    find("search-note").textContent = "searching …";
    try {
      const result = await this.connection.ask("search", {
        game: game.upTo(game.index), seconds, model: find("network").value,
        simulations: Number(find("budget").value),
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
    const { game } = this;
    find("eval").classList.toggle("flipped", this.board.orientation === "black");
    const network = find("network").selectedOptions[0]?.textContent ?? "the network";
    for (const place of ["top", "bottom"]) {
      const side = place === "bottom" ? this.board.orientation : other(this.board.orientation);
      const row = find(`player-${place}`);
      row.dataset.side = side;
      row.classList.toggle("to-move", game.position?.turn === side && !game.over);
      row.querySelector(".name").textContent = game.human === "both"
        ? game.names[side] || title(side) : game.human === side ? "You" : network;
      const clock = row.querySelector(".clock");
      clock.hidden = !this.clock;
      if (this.clock) clock.textContent = clockText(this.clock.left[side]);
    }
  }
}
