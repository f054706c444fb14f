// @ts-check
// The newest question wins, in panels, forms and texts that grow: it cancels the one before, however late the answer
// comes. A question without an answer is asked again.

(() => {
  "use strict";

  const AGAIN = 2000; // milliseconds until an unanswered question is asked again

  /** @typedef {(path: string, body: () => object) => Promise<any>} Ask
   * The server's answer; the body is what holds when it is asked. Rejects as soon as something newer is asked. */

  const wait = (/** @type {number} */ time) => new Promise((done) => setTimeout(done, time));

  class Newest {
    /** @type {AbortController | null} */
    #asking = null;
    count = 0; // questions so far

    /** Whether an answer is awaited. */
    get awaits() {
      return this.#asking !== null;
    }

    /** Forget what was asked. */
    drop() {
      this.#asking?.abort();
      this.#asking = null;
    }

    /** Ask what this work asks, after a pause. Returns what it returns, or undefined once something newer is asked.
     * @template T @param {(ask: Ask, signal: AbortSignal) => Promise<T>} work @param {number} [pause] milliseconds
     * @returns {Promise<T | undefined>} */
    async do(work, pause = 0) {
      this.drop();
      this.count++;
      const mine = (this.#asking = new AbortController()), { signal } = mine;
      /** @type {Ask} */
      const ask = async (path, body) => {
        for (;;) {
          signal.throwIfAborted();
          const answer = await window["playground"].ask(path, body(), signal).catch(() => null);
          signal.throwIfAborted();
          if (answer) return answer;
          await wait(AGAIN);
        }
      };
      try {
        if (pause) await wait(pause);
        return signal.aborted ? undefined : await work(ask, signal);
      } catch (problem) {
        if (!signal.aborted) throw problem;
      } finally {
        if (this.#asking === mine) this.#asking = null;
      }
    }
  }

  window["playground"] = { ...window["playground"], Newest };
})();
