/**
 * Korean morphemes where no Kiwi runs: a bigram model of what Kiwi makes of text, and Viterbi.
 *
 * Counts are those of packs/korean.json.gz (git show 3b3795af:recipes/korean_splitter.py). A word is divided into
 * pieces: morphemes of the list; syllables in which morphemes are contracted (갔 = 가 + 었), by
 * rules for their ends, so that 번역한 needs only 번역하; and, dear, what is not in the list. The state
 * after a morpheme is the morpheme itself if it is frequent, else its class: its tag, and whether it
 * ends in a consonant.
 */

const DISCOUNT = 0.6;  // of counts of pairs: what is left goes to pairs that were not seen
const UNSEEN = 0.3;  // count of a morpheme that is not in the list
const UNKNOWN = [3, 3.2];  // cost of a piece that is not in the list, and of each of its syllables
const MAX_PIECE = 10;
const MAX_UNKNOWN = 8;
const BEAM = 16;
const BOUNDARY = 0;  // state and class of the beginning and the end of a text
const NOT_HANGUL = [[/[A-Za-z\u00c0-\u024f]+/y, "SL"], [/\d+(?:[.,]\d+)*/y, "SN"], [/\p{Script=Han}+/uy, "SH"], [/\.{2,}/y, "SE"], [/./suy, "SW"]];
const HANGUL = /[가-힣]+/y;

export class KoreanTokenizer {
  /** @param {Object} pack  Of packs/korean.json.gz. */
  constructor(pack) {
    const { tags, classes, morphemes, lexical, rules } = pack;
    this.classes = new Map(classes.map((name, i) => [name, i + 1]));
    this.numLexical = lexical.length;
    this.lexical = new Map(lexical.map(([form, tag], i) => [`${form}/${tags[tag]}`, i + 1]));
    this.morphemes = new Map();
    this.byForm = new Map();
    this.totals = new Float64Array(classes.length + 1).fill(UNSEEN);
    for (const [tag, levels] of Object.entries(morphemes)) {
      for (const [level, forms] of Object.entries(levels)) {
        for (const form of forms.split(" ")) this.#add(form, tag, countOf(Number(level)));
      }
    }
    this.rules = new Map();
    for (const [surface, end, tag, cost, ...rest] of rules) {
      const rule = { end, tag: tags[tag], cost: cost / 10, rest: rest.map(([form, other]) => [form, tags[other]]) };
      push(this.rules, surface, rule);
    }
    this.afterClass = pack.class_pairs.map(readRow);
    this.afterState = pack.pairs.map(readRow);
    this.shares = sharesOf(this.afterClass);
  }

  /**
   * Morphemes of each word between spaces, with the first unit in the text and the one after the
   * last; those of a contracted syllable have the same place.
   * @param {string} text
   * @returns {{text: string, start: number, end: number}[][]}
   */
  words(text) {
    const begin = { state: BOUNDARY, class: BOUNDARY, score: 0, before: null };
    let nodes = [begin];
    const matches = [...text.matchAll(/\S+/g)];
    for (const [number, match] of matches.entries()) nodes = this.#read(match[0], match.index, number, nodes);
    const end = { state: BOUNDARY, class: BOUNDARY, share: 1 };
    const total = (node) => node.score + this.#follows(node, end, true);
    const found = matches.map(() => []);
    for (let node = nodes.reduce((a, b) => (total(b) > total(a) ? b : a)); node.before; node = node.before) {
      const { start, end } = node;
      found[node.number].unshift(...node.pieces.map(({ form }) => ({ text: form, start, end })));
    }
    return found;
  }

  #add(form, tag, count) {
    const name = this.classes.get(tag + endOf(form));
    this.totals[name] += count;
    const morpheme = { form, class: name, count, state: this.lexical.get(`${form}/${tag}`) ?? this.numLexical + name, tag };
    this.morphemes.set(`${form}/${tag}`, morpheme);
    push(this.byForm, form, morpheme);
  }

  #morpheme(form, tag) {
    const name = this.classes.get(tag + endOf(form)) ?? this.classes.get("NNPV");
    return this.morphemes.get(`${form}/${tag}`) ?? { form, class: name, count: UNSEEN, state: this.numLexical + name, tag };
  }

  /** Continue the best ways through the text by one word. */
  #read(word, at, number, before) {
    const ways = Array.from({ length: word.length + 1 }, () => new Map());
    for (const node of before) ways[0].set(node.state, node);
    for (let i = 0; i < word.length; i++) {
      if (ways[i].size === 0) continue;
      const nodes = [...ways[i].values()].sort((a, b) => b.score - a.score).slice(0, BEAM);
      for (const { end, pieces, cost } of this.#pieces(word, i)) {
        for (const node of nodes) {
          let last = node;
          let score = node.score - cost;
          for (const piece of pieces) {
            score += this.#follows(last, piece, i === 0 && last === node);
            last = piece;
          }
          const old = ways[end].get(last.state);
          if (old === undefined || score > old.score) {
            ways[end].set(last.state, { state: last.state, class: last.class, score, before: node, pieces, number, start: at + i, end: at + end });
          }
        }
      }
    }
    return [...ways[word.length].values()].sort((a, b) => b.score - a.score).slice(0, BEAM);
  }

  /** What may begin at a place of a word: where it ends, its morphemes, and what it costs. */
  #pieces(word, i) {
    const found = [];
    for (let end = i + 1; end <= Math.min(word.length, i + MAX_PIECE); end++) {
      const surface = word.slice(i, end);
      for (const piece of this.byForm.get(surface) ?? []) found.push({ end, pieces: [piece], cost: 0 });
      for (let k = 0; k < surface.length; k++) {
        for (const rule of this.rules.get(surface.slice(k)) ?? []) {
          const first = this.morphemes.get(`${surface.slice(0, k)}${rule.end}/${rule.tag}`);
          if (first === undefined) continue;
          found.push({ end, pieces: [first, ...rule.rest.map(([form, tag]) => this.#morpheme(form, tag))], cost: rule.cost });
        }
      }
    }
    const hangul = matchAt(HANGUL, word, i);
    for (let end = i + 1; end <= i + Math.min(hangul.length, MAX_UNKNOWN); end++) {
      const form = word.slice(i, end);
      if (this.morphemes.has(`${form}/NNG`)) continue;
      found.push({ end, pieces: [this.#morpheme(form, "NNP")], cost: UNKNOWN[0] + UNKNOWN[1] * form.length });
    }
    if (hangul === "") {
      const [form, tag] = NOT_HANGUL.map(([pattern, tag]) => [matchAt(pattern, word, i), tag]).find(([form]) => form !== "");
      if (tag !== "SW" || found.length === 0) found.push({ end: i + form.length, pieces: [this.#morpheme(form, tag)], cost: 0 });
    }
    return found;
  }

  /** Log probability of a morpheme after another one. */
  #follows(last, next, isFirst) {
    const share = next.share ?? next.count / this.totals[next.class];
    const row = this.afterClass[last.class];
    const key = 2 * next.class + Number(isFirst);
    const ofClass = (row.shares.get(key) ?? 0) + row.rest * (this.shares.get(key) ?? 1e-9);
    const own = this.afterState[last.state];
    const seen = own.shares.get(2 * next.state + Number(isFirst)) ?? 0;
    const isLexical = next.state <= this.numLexical;
    return Math.log(isLexical ? seen + own.rest * ofClass * share : (seen + own.rest * ofClass) * share);
  }
}

/** Counts are kept as levels: twice their logarithm to the base of 2. */
const countOf = (level) => 2 ** (level / 2);

/** The last letter of a morpheme: V vowel, L ㄹ, C another consonant, X no syllable of Hangul. */
function endOf(form) {
  const code = form.charCodeAt(form.length - 1) - 0xac00;
  if (code < 0 || code >= 11172) return "X";
  return code % 28 === 0 ? "V" : code % 28 === 8 ? "L" : "C";
}

/** What follows a state: [total, distance to the next key, level of its count, …]. */
function readRow([total, ...numbers]) {
  const shares = new Map();
  let key = 0;
  let rest = 1;
  for (let i = 0; i < numbers.length; i += 2) {
    key += numbers[i];
    const share = Math.max(0, countOf(numbers[i + 1]) - DISCOUNT) / total;
    shares.set(key, share);
    rest -= share;
  }
  return { total, shares, rest: Math.max(rest, 1e-6) };
}

/** How often each class follows any other. */
function sharesOf(rows) {
  const sums = new Map();
  let total = 0;
  for (const row of rows) {
    for (const [key, share] of row.shares) {
      sums.set(key, (sums.get(key) ?? 0) + share * row.total);
      total += share * row.total;
    }
  }
  return new Map([...sums].map(([key, sum]) => [key, sum / total]));
}

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

function push(lists, key, value) {
  if (!lists.has(key)) lists.set(key, []);
  lists.get(key).push(value);
}
