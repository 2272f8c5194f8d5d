/** The errors of the interface. They keep their code on the way from a worker or a server. */

/**
 * @typedef {"unknown-model"|"unknown-run"|"unknown-task"|"no-model"|"no-softmax"|"no-vocabulary"|
 *   "no-trace"|"missing-extra"|"too-long"|"bad-input"|"not-available"|"no-workers"|"network"|"no-server"|"damaged-model"|
 *   "damaged-run"|"bug"} ErrorCode
 *
 * unknown-model   no model of this name
 * unknown-run     no training run of this name
 * unknown-task    no task of this name
 * no-model        a call before `open`, or for a model whose place another has taken
 * no-softmax      the model has no output layer (imported weights): no surprisal, no predictions
 * no-vocabulary   it has an output layer, but no words for it
 * no-trace        it reads characters by a list: its steps cannot be followed
 * missing-extra   the server lacks a Python package, such as that of a tokenizer
 * too-long        more words or bytes than `limits` in the catalog, or too many likeliest words
 * bad-input       NUL, half a surrogate pair, an index outside the sentence, wrong weights …
 * not-available   needs a server, or something the server was not started with
 * no-workers      this browser has no module workers
 * network         a file of the page cannot be read
 * no-server       the server does not answer
 * damaged-model   a file of the model is not what it should be
 * damaged-run     a file of a run directory is not what it should be
 * bug             anything else
 */
export class ComputeError extends Error {
  /** @param {ErrorCode} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = "ComputeError";
    this.code = code;
  }
}
