// The WebSocket to the server: requests with numbers, and their answers. It opens again when it
// breaks; what was asked and not answered then fails, and the page asks anew.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;

export class Connection extends EventTarget {
  constructor() {
    super();
    this.number = 0;
    this.waiting = new Map(); // number -> {resolve, reject, onInfo, onSpikes}
    this.queue = [];
    this.searching = null; // the number of the search that may be stopped
    this.waitMs = FIRST_WAIT_MS;
    this.open();
  }

  open() {
    this.socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`);
    this.socket.binaryType = "arraybuffer";
    this.socket.addEventListener("open", () => {
      this.waitMs = FIRST_WAIT_MS;
      this.dispatchEvent(new Event("open"));
      for (const text of this.queue.splice(0)) this.socket.send(text);
    });
    this.socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") this.receive(JSON.parse(data));
      else this.receiveSpikes(data);
    });
    this.socket.addEventListener("close", ({ reason }) => {
      for (const { reject } of this.waiting.values()) {
        reject(new Error(reason || "the connection to the server broke"));
      }
      this.waiting.clear();
      this.queue = [];
      this.searching = null;
      this.dispatchEvent(new CustomEvent("closed", { detail: reason }));
      setTimeout(() => this.open(), this.waitMs);
      this.waitMs = Math.min(2 * this.waitMs, LONGEST_WAIT_MS);
    });
  }

  /** Send a request; resolves with its answer, or rejects with an Error. */
  ask(type, fields = {}, listeners = {}) {
    const id = ++this.number;
    if (type === "search") this.searching = id;
    const text = JSON.stringify({ type, id, ...fields });
    const answer = new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, ...listeners });
    });
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text);
    else this.queue.push(text);
    return answer;
  }

  /**
   * Tell the server, once, to end the search with what it has; its answer comes to who asked for it.
   * A new search needs no stop before it.
   */
  stop() {
    if (this.searching === null || this.socket.readyState !== WebSocket.OPEN) return;
    this.socket.send(JSON.stringify({ type: "stop", id: ++this.number }));
    this.searching = null;
  }

  receive(message) {
    const asked = this.waiting.get(message.id);
    if (!asked) return;
    if (message.type === "info") {
      asked.onInfo?.(message);
      return;
    }
    this.waiting.delete(message.id);
    if (message.id === this.searching) this.searching = null;
    if (message.type === "error") asked.reject(new Error(message.message));
    else asked.resolve(message);
  }

  /** A frame of chess_snn/web/networks.py: the length of a header, the header, the spikes. */
  receiveSpikes(frame) {
    const length = new DataView(frame).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(frame, 4, length)));
    this.waiting.get(header.id)?.onSpikes?.(header, new Uint8Array(frame, 4 + length));
  }
}
