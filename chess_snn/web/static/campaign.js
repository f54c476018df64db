// The page of a campaign: its state, curves and alarms, read every few seconds, and a replay of its
// newest games.

import { Board } from "./board.js";
import { drawCurve } from "./curves.js";
import { say } from "./speech.js";
import { drawTiles } from "./tiles.js";
import { counted } from "./words.js";

const PERIOD_MS = 3000;
const STEP_MS = 700;

async function read(path) {
  const answer = await fetch(path);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.message);
  return body;
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

export class CampaignPage {
  constructor() {
    this.root = document.getElementById("campaign");
    this.root.innerHTML = `
      <div class="wide">
        <section class="card head" aria-labelledby="campaign-name">
          <div class="card-head"><h2 id="campaign-name"></h2><span class="state"></span></div>
          <progress max="1" value="0" aria-label="Progress of the campaign"></progress>
          <p class="facts"></p><p class="promotion-note"></p><ul class="stages"></ul>
        </section>
        <section class="card alarms" aria-label="Alarms" hidden><h2>Alarms</h2><ul></ul></section>
        <section class="card" aria-label="Ladder and devices"><div class="figures"></div>
          <table class="workers" hidden><caption class="hidden">Workers</caption><thead><tr>
            <th scope="col">Worker</th><th scope="col">Games/s</th><th scope="col">Use</th><th scope="col">Doing</th>
          </tr></thead><tbody></tbody></table><ul class="finals"></ul></section>
        <section class="card" aria-label="Curves"><h2>Curves</h2><div class="curves"></div></section>
      </div>
      <section class="card replay" aria-label="Newest games">
        <div class="card-head"><h2>Newest games</h2><button class="quiet reload">Look again</button></div>
        <p class="note from"></p>
        <div class="replay-board"></div>
        <div class="bar steps">
          <button data-step="first" aria-label="To the beginning">|◀</button><button data-step="back" aria-label="One move back">◀</button>
          <button data-step="play" aria-label="Play">▶▶</button>
          <button data-step="on" aria-label="One move forward">▶</button><button data-step="last" aria-label="To the end">▶|</button>
        </div>
        <p class="status"></p><ol class="games" aria-label="Games"></ol>
      </section>
      <p class="fault" role="alert"></p>`;
    this.find = (selector) => this.root.querySelector(selector);
    this.find(".reload").addEventListener("click", () => this.listGames());
    this.root.addEventListener("click", ({ target }) => {
      if (target.dataset.step) this.step(target.dataset.step);
    });
  }

  /** The page is shown: look now, and again while it is. */
  open() {
    clearInterval(this.timer);
    this.timer = setInterval(() => {
      if (this.root.hidden) clearInterval(this.timer);
      else if (!document.hidden) this.look();
    }, PERIOD_MS);
    this.look();
    this.listGames();
  }

  async look() {
    try {
      this.show(await read("api/campaign"));
      this.find(".fault").textContent = "";
    } catch (error) {
      this.find(".fault").textContent = error.message;
    }
  }

  show(state) {
    this.find("#campaign-name").textContent = state.name;
    this.find(".state").textContent = state.state;
    this.find(".state").dataset.kind = state.is_finished ? "finished" : state.is_running ? "running" : "";
    this.find("progress").value = state.progress;
    this.find(".facts").textContent = [
      state.length, `${Math.round(100 * state.progress)}% done`, `ran for ${state.elapsed}`,
      state.left && `${state.left} left`, `${counted(state.iterations, "iteration")} finished`,
      state.champion !== null && `champion is generation ${state.champion}`,
    ].filter(Boolean).join(" · ");
    this.find(".promotion-note").textContent = state.last_promotion
      ? `Last gating match: ${state.last_promotion}` : "";
    this.find(".stages").replaceChildren(...state.stages.map(({ text, share }) => {
      const item = element("li", "", text);
      const bar = document.createElement("progress");
      bar.max = 1;
      bar.value = share;
      bar.setAttribute("aria-label", text);
      item.append(bar);
      return item;
    }));
    this.find(".alarms").hidden = !state.alarms.length && !state.faults.length;
    const alarms = state.alarms.map((alarm) => {
      const item = element("li", "");
      item.append(element("b", "", `${alarm.name} since iteration ${alarm.since}`),
        element("p", "", alarm.saw), element("p", "note", alarm.advice));
      return item;
    });
    const faults = state.faults.map((fault) => element("li", "", fault));
    this.find(".alarms ul").replaceChildren(...alarms, ...faults);
    this.showFigures(state);
    this.find(".curves").replaceChildren(...state.curves.map(drawCurve));
    if (state.iterations !== this.iterations && this.iterations !== undefined) this.listGames();
    this.iterations = state.iterations;
  }

  showFigures(state) {
    const { ladder } = state;
    const devices = state.curves.find(({ column }) => column === "device_utilisation");
    const figures = [
      ["On the ladder", ladder ? `${Math.round(ladder.elo)} Elo` : "not measured",
        ladder ? `${Math.round(ladder.low)} to ${Math.round(ladder.high)}, generation ${ladder.generation}` : ""],
      ["Devices in use", devices?.newest ?? "not measured", "mean of the newest iteration"],
      ...(state.is_finished ? []
        : [["Cores now", state.cores === null ? "not on this host" : state.cores.toFixed(1), ""]]),
      ["Disk", `${state.disk_gib.toFixed(2)} GiB`, `${state.free_gib.toFixed(0)} GiB free`],
    ];
    this.find(".figures").replaceChildren(...figures.map(([name, value, more]) => {
      const figure = element("p", "figure");
      figure.append(element("span", "", name), element("b", "", value), element("small", "", more));
      return figure;
    }));
    this.find(".workers").hidden = !state.workers.length;
    this.find(".workers tbody").replaceChildren(...state.workers.map((worker) => {
      const row = document.createElement("tr");
      const use = worker.gpu || `${worker.cores.toFixed(1)} cores, ${worker.memory_gib.toFixed(1)} GiB`;
      for (const text of [worker.name, worker.games_per_s.toFixed(1), use, worker.doing]) {
        row.insertCell().textContent = text;
      }
      return row;
    }));
    this.find(".finals").replaceChildren(
      ...state.final_matches.map((line) => element("li", "", line)),
    );
  }

  async listGames() {
    try {
      const { iteration, generation, games } = await read("api/campaign/games");
      this.find(".from").textContent = iteration === null ? "There are none yet."
        : `Iteration ${iteration}, played by generation ${generation}`;
      this.find(".games").replaceChildren(...games.map((game) => {
        const item = document.createElement("li");
        const button = element("button", "");
        button.append(element("b", "", game.result || counted(game.plies, "move")),
          element("span", "", game.result ? counted(game.plies, "ply") : ""), element("span", "", game.ending));
        button.addEventListener("click", () => this.openGame(iteration, game.number));
        item.append(button);
        return item;
      }));
      if (games.length && !this.game) await this.openGame(iteration, games[0].number);
    } catch (error) {
      this.find(".fault").textContent = error.message;
    }
  }

  async openGame(iteration, number) {
    try {
      this.game = await read(`api/campaign/games/${iteration}/${number}`);
    } catch (error) {
      this.find(".fault").textContent = error.message;
      return;
    }
    this.pause();
    const box = this.find(".replay-board");
    if (this.game.kind === "chess" && !this.board) {
      box.replaceChildren();
      this.board = new Board(box, { label: "Recorded game" });
    }
    box.classList.toggle("tiles-box", this.game.kind !== "chess");
    this.ply = 0;
    this.showPly();
  }

  showPly(slide = false) {
    const { kind, positions, moves, names, result, ending, number } = this.game;
    const move = this.ply ? moves[this.ply - 1] : null;
    if (kind === "chess") this.board.set({ fen: positions[this.ply], lastMove: move, slide });
    else drawTiles(this.find(".replay-board"), positions[this.ply]);
    const mover = Math.ceil(this.ply / 2);
    const played = !move ? "the beginning"
      : kind === "chess" ? `${mover}${this.ply % 2 ? "." : "…"} ${names[this.ply - 1]}` : names[this.ply - 1];
    this.find(".replay .status").textContent =
      `Game ${number}, ply ${this.ply} of ${moves.length}: ${played}. ${result} ${ending}`;
  }

  step(kind) {
    if (!this.game) return;
    if (kind === "play") {
      if (this.playing) this.pause();
      else {
        if (this.ply === this.game.moves.length) this.ply = 0;
        this.playing = setInterval(() => this.move(1), STEP_MS);
        this.find('[data-step="play"]').textContent = "Ⅱ";
      }
      return;
    }
    this.pause();
    const end = this.game.moves.length;
    const by = { first: -end, last: end, back: -1, on: 1 }[kind];
    this.move(by);
    say(this.find(".replay .status").textContent);
  }

  move(by) {
    const end = this.game.moves.length;
    this.ply = Math.min(end, Math.max(0, this.ply + by));
    this.showPly(by === 1);
    if (this.ply === end) this.pause();
  }

  pause() {
    clearInterval(this.playing);
    this.playing = null;
    this.find('[data-step="play"]').textContent = "▶▶";
  }
}
