/** Computation in this browser: a module worker that runs the engine. */

import { ComputeError } from "./errors.js";

export class BrowserBackend {
  #catalog;
  #base;
  #worker = null;
  #waiting = new Map();
  #numCalls = 0;
  #asked = null;  // name of the model that the worker was told to open last
  #opening = null;

  constructor(catalog, base) {
    this.#catalog = catalog;
    this.#base = base;
  }

  open(info, onProgress) {
    if (this.#asked === info.name) return this.#opening;
    const folder = new URL(info.path, this.#base).href;
    const rules = new URL("tokenizer-rules.json", this.#base).href;
    const splitter = info.tokenizer === "close" ? new URL("packs/korean.json.gz", this.#base).href : null;
    const { compressed, num_bytes: total } = info;
    const args = { folder, rules, splitter, compressed, version: info.version, limits: this.#catalog.limits, total };
    const opening = this.#send("open", info, args, onProgress);
    this.#asked = info.name;
    this.#opening = opening;
    opening.catch(() => {
      if (this.#opening === opening) this.#asked = null;
    });
    return opening;
  }

  call(method, args, info) {
    return this.#send(method, info, args);
  }

  close() {
    this.#fail(new ComputeError("not-available", "The worker was stopped."));
  }

  async #send(method, info, args, onProgress = null) {
    this.#worker ??= this.#start();
    const id = ++this.#numCalls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress });
      this.#worker.postMessage({ id, method, model: info.name, args });
    });
  }

  #start() {
    let worker;
    try {
      worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    } catch (error) {
      const message = `This browser cannot run the model: it has no module workers (${error.message}).`;
      throw new ComputeError("no-workers", message);
    }
    worker.onmessage = ({ data }) => this.#receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      const reason = event.message || "its script could not be loaded";
      this.#fail(new ComputeError("no-workers", `The worker that runs the model failed: ${reason}.`));
    };
    return worker;
  }

  #receive({ id, progress, result, error }) {
    const call = this.#waiting.get(id);
    if (call === undefined) return;
    if (progress !== undefined) {
      call.onProgress?.(progress);
      return;
    }
    this.#waiting.delete(id);
    if (error !== undefined) call.reject(new ComputeError(error.code, error.message));
    else call.resolve(result);
  }

  /** Reject all calls; the next one starts a new worker. */
  #fail(error) {
    this.#worker?.terminate();
    this.#worker = null;
    this.#asked = null;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
