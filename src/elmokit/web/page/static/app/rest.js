/** What the page shows below its first view: the sentence, the panels, the tour. */

import { Follow } from "./follow.js";
import { formulas } from "./formula.js";
import { MapOfMeanings } from "./map.js";
import { Mixture } from "./mixture.js";
import { Near } from "./near.js";
import { Predict } from "./predict.js";
import { Reach } from "./reach.js";
import { Surprise } from "./surprise.js";
import { Tasks } from "./tasks.js";
import { Training } from "./training.js";

const CONTENTS = {
  follow: Follow, predict: Predict, surprise: Surprise, map: MapOfMeanings, mixture: Mixture,
  near: Near, reach: Reach, training: Training, tasks: Tasks,
}; // prettier-ignore

export { replaced } from "./replace.js";
export { MAX_WORDS, Sentence } from "./sentence.js";
export { Tour } from "./tour.js";

/** In order, by id: what each shows and its formulas. */
export const panels = Object.fromEntries(
  Object.entries(CONTENTS).map(([id, Content]) => [id, { Content, formulas: formulas[id] }]),
);
