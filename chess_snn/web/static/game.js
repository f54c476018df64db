// A game of chess as the page knows it: its moves, whose turn it is, and how it ended. The server
// checks the moves and describes the positions.

import { firstNumber } from "./moves.js";

export const other = (side) => (side === "white" ? "black" : "white");
export const title = (side) => side[0].toUpperCase() + side.slice(1);

export class ChessGame {
  /** `human` is the person's side, or "both"; the others are what an import answers. */
  constructor({ human = "white", start = null, moves = [], white = "", black = "", result = "*" } = {}) {
    Object.assign(this, { human, start, result }); // result: until a move is made or taken back
    this.moves = [...moves];
    this.names = { white, black }; // empty where they are not known
    this.verdict = null; // how the game ended beside the rules: {reason, result}
    this.index = 0; // moves on the board
    this.position = null; // after them, as the server describes it
    this.sans = []; // of all moves
  }

  /** The game up to `index` moves, as requests have it. */
  upTo(index) {
    return { kind: "chess", start: this.start, moves: this.moves.slice(0, index) };
  }

  stand(index, position) {
    Object.assign(this, { index, position });
    if (this.atEnd) this.sans = position.san;
  }

  get atEnd() {
    return this.index === this.moves.length;
  }

  get isHumansTurn() {
    return this.human === "both" || this.position?.turn === this.human;
  }

  /** How the game ended, or null; only at its newest position beside the rules. */
  get over() {
    return this.position?.over ?? (this.atEnd ? this.verdict : null);
  }

  get ending() {
    const { reason, result } = this.over;
    const winner = { "1-0": "White wins", "0-1": "Black wins" }[result] ?? "Drawn";
    return `${winner}: ${reason}. ${result.replace("1/2-1/2", "½–½")}`;
  }

  get status() {
    if (this.over) return this.ending;
    if (!this.atEnd) return "An earlier position";
    const who = this.human === "both" || !this.isHumansTurn ? title(this.position.turn) : "You";
    const verb = who === "You" ? "are" : "is";
    return `${who} ${verb} to move${this.position.check ? ", in check" : ""}`;
  }

  /** The place of the person's first move in the game: 1 where the network begins. */
  get firstOwnMove() {
    const beginner = firstNumber(this.start).offset ? "black" : "white";
    return this.human === "both" || this.human === beginner ? 0 : 1;
  }

  /** How many moves stay when the person's last one and the answer to it are taken back. */
  get keptMoves() {
    const hasAnswer = this.human !== "both" && !this.verdict && this.atEnd && this.isHumansTurn;
    return this.moves.length - (hasAnswer ? 2 : 1);
  }

  /** Leave the first `count` moves, and make the move `uci` if there is one; returns how to undo that. */
  change(count, uci = null) {
    const { moves, result, verdict } = this;
    this.moves = [...this.moves.slice(0, count), ...(uci ? [uci] : [])];
    this.verdict = null;
    this.result = "*";
    // The clock may have ended the game meanwhile.
    return () => Object.assign(this, { moves, result, verdict: this.verdict ?? verdict });
  }

  /** The legal moves that `text` may mean, as people or as engines write them: one, if it is clear. */
  movesLike(text) {
    const plain = (san) => san.replace(/[+#=x-]/g, "").replaceAll("0", "O");
    const { legal } = this.position;
    const exact = legal.filter(({ uci, san }) => uci === text.toLowerCase() || plain(san) === plain(text));
    if (exact.length) return exact;
    return legal.filter(({ san }) => plain(san).toLowerCase() === plain(text).toLowerCase());
  }
}
