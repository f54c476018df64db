// The dialogs of the page of chess: a new game, promotion, import and export.

import { drawPiece } from "./board.js";

const find = (id) => document.getElementById(id);
const PIECES = { q: "queen", r: "rook", b: "bishop", n: "knight" };

export class ChessDialogs {
  constructor(page) {
    this.page = page;
    find("new-game").addEventListener("click", () => find("new-dialog").showModal());
    find("new-dialog").addEventListener("submit", ({ target }) => {
      page.newGame(target.elements.colour.value, find("clock").value);
    });
    for (const button of document.querySelectorAll("[data-close]")) {
      button.addEventListener("click", () => button.closest("dialog").close());
    }
    find("import").addEventListener("click", () => this.openText("Import", "", true));
    find("export").addEventListener("click", () => this.export());
    find("text-load").addEventListener("click", () => this.load());
    find("text-copy").addEventListener("click", () => this.copy());
    find("text-save").addEventListener("click", () => this.save());
  }

  /** Ask to what a pawn promotes; resolves with one of `moves`, or null. */
  promote(moves, side) {
    const dialog = find("promotion-dialog");
    const form = dialog.querySelector("form");
    form.replaceChildren(...Object.entries(PIECES).map(([letter, name]) => {
      const button = document.createElement("button");
      button.value = letter;
      button.setAttribute("aria-label", name);
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("viewBox", "0 0 100 100");
      drawPiece(side === "white" ? letter.toUpperCase() : letter, svg);
      button.append(svg);
      return button;
    }));
    dialog.returnValue = "";
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => {
        resolve(moves.find(({ uci }) => uci[4] === dialog.returnValue) ?? null);
      }, { once: true });
    });
  }

  openText(name, text, loads) {
    find("text-title").textContent = name;
    find("text").value = text;
    find("text").readOnly = !loads;
    find("text-fault").textContent = "";
    find("text-load").hidden = !loads;
    find("text-copy").hidden = find("text-save").hidden = loads;
    find("text-dialog").showModal();
    find("text").setSelectionRange(0, 0);
    find("text").scrollTop = 0; // the FEN is the first line
  }

  async load() {
    const { page } = this;
    try {
      const game = await page.connection.ask("import", { text: find("text").value });
      find("text-dialog").close();
      page.load({ ...game, human: "both" }); // to look at; a new game begins with a side
      page.show(game.moves.length);
    } catch (error) {
      find("text-fault").textContent = error.message;
    }
  }

  async export() {
    const { page } = this;
    const { game } = page;
    const network = find("network").value;
    const name = (side) => (game.human === "both" ? game.names[side]
      : game.human === side ? "human" : network);
    try {
      const { pgn } = await page.connection.ask("export", {
        game: game.upTo(game.moves.length), white: name("white"), black: name("black"),
        result: game.verdict?.result ?? game.result,
      });
      this.pgn = pgn;
      this.openText("Export", `${game.position.fen}\n\n${pgn}`, false);
    } catch (error) {
      page.complain(error);
    }
  }

  async copy() {
    find("text").select();
    try {
      await navigator.clipboard.writeText(find("text").value);
      find("text-fault").textContent = "copied";
    } catch {
      find("text-fault").textContent = "this browser does not let the page copy; it is selected";
    }
  }

  save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.pgn], { type: "application/x-chess-pgn" }));
    link.download = "game.pgn";
    link.click();
    URL.revokeObjectURL(link.href);
  }
}
