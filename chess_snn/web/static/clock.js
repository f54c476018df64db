// Two clocks that count down in turn. They run in the browser: the server knows no time.

const TICK_MS = 100;

/** "4:05", and with tenths below ten seconds. */
export function clockText(milliseconds) {
  const left = Math.max(0, milliseconds);
  if (left < 10_000) return (Math.floor(left / 100) / 10).toFixed(1);
  const seconds = Math.floor(left / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

export class Clock {
  /** `text` is "180+2": seconds for the game, and seconds more for each move. */
  constructor(text, { onTick, onFlag }) {
    const [seconds, increment] = text.split("+").map(Number);
    this.left = { white: 1000 * seconds, black: 1000 * seconds };
    this.increment = 1000 * increment;
    this.running = null;
    Object.assign(this, { onTick, onFlag });
    this.timer = setInterval(() => this.look(), TICK_MS);
  }

  /** `side` is to move; the other one has moved, and gets its increment if `moved`. */
  start(side, moved) {
    this.look();
    if (moved && this.running && this.running !== side) this.left[this.running] += this.increment;
    this.running = side;
    this.since = performance.now();
    this.onTick();
  }

  stop() {
    this.look();
    this.running = null;
  }

  close() {
    clearInterval(this.timer);
    this.running = null;
  }

  look() {
    if (!this.running) return;
    const now = performance.now();
    this.left[this.running] -= now - this.since;
    this.since = now;
    this.onTick();
    if (this.left[this.running] <= 0) {
      const flagged = this.running;
      this.running = null;
      this.onFlag(flagged);
    }
  }
}
