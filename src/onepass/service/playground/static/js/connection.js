// The socket to the library: one request at a time, and after its answer the newest that was asked for meanwhile.

const PATIENCE = [300, 1000, 3000, 5000]; // milliseconds before the next attempt to connect

export class Connection {
  #address;
  #onAnswer;
  #onLost;
  #socket = null;
  #attempts = 0;
  #number = 0;
  #waiting = null; // the newest request that has not been sent
  #sent = null; // the one that has no answer yet

  constructor(address, onAnswer, onLost) {
    this.#address = address;
    this.#onAnswer = onAnswer;
    this.#onLost = onLost;
    this.#connect();
  }

  /** Ask for a view; context comes back with the answer. */
  ask(request, context) {
    this.#number += 1;
    this.#waiting = { request: { ...request, id: this.#number }, context };
    this.#send();
  }

  get isBusy() {
    return this.#sent !== null || this.#waiting !== null;
  }

  #connect() {
    const socket = new WebSocket(this.#address);
    this.#socket = socket;
    socket.addEventListener("open", () => {
      this.#attempts = 0;
      this.#send();
    });
    socket.addEventListener("message", (event) => this.#receive(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      // What was asked and not answered is asked again, as a request holds everything.
      this.#waiting ??= this.#sent;
      this.#sent = null;
      this.#onLost();
      const wait = PATIENCE[Math.min(this.#attempts, PATIENCE.length - 1)];
      this.#attempts += 1;
      setTimeout(() => this.#connect(), wait);
    });
  }

  #send() {
    if (this.#sent || !this.#waiting || this.#socket.readyState !== WebSocket.OPEN) return;
    this.#sent = this.#waiting;
    this.#waiting = null;
    this.#socket.send(JSON.stringify(this.#sent.request));
  }

  #receive(answer) {
    const { context } = this.#sent ?? {};
    this.#sent = null;
    this.#send();
    if (context) this.#onAnswer(answer, context);
  }
}

/** An array that the library has sent. */
export function floats(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}
