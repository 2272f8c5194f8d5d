/** The formulas of the panels, in MathML, which browsers typeset without a library. */

const math = (...parts) =>
  `<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><mrow>${parts.join("")}</mrow></math>`;
const row = (...parts) => `<mrow>${parts.join("")}</mrow>`;
const i = (name) => `<mi>${name}</mi>`;
const v = (name) => `<mi mathvariant="bold">${name}</mi>`;
const n = (value) => `<mn>${value}</mn>`;
const o = (sign) => `<mo>${sign}</mo>`;
const sub = (base, below) => `<msub>${base}${below}</msub>`;
const over = (base, above) => `<mover>${base}<mo>${above}</mo></mover>`;
const under = (base, below) => `<munder>${base}${below}</munder>`;
const sum = (below, above) => `<munderover><mo>∑</mo>${below}${above}</munderover>`;
const frac = (top, bottom) => `<mfrac>${top}${bottom}</mfrac>`;
const fence = (...parts) => row(o("("), ...parts, o(")"));
const norm = (...parts) => row(o("‖"), ...parts, o("‖"));

const w = (at) => sub(i("w"), at);
const t = (sign) => row(i("t"), o(sign), n(1));
const before = w(row(o("&lt;"), i("t"))); // all words before place t
const after = w(row(o("&gt;"), i("t")));
const p = (context) => row(i("p"), fence(w(i("t")), o("∣"), context));
const log2 = sub("<mi>log</mi>", n(2));
const at = (layer) => row(i("t"), o(","), layer);
const h = sub(v("h"), at(i("j")));
const half = (arrow) => sub(over(v("h"), arrow), at(i("j")));
const mixture = row(i("γ"), sum(row(i("j"), o("="), n(0)), i("L")), sub(i("s"), i("j")), h);
const cosine = row(
  i("cos"), fence(v("a"), o(","), v("b")), o("="),
  frac(row(v("a"), o("·"), v("b")), row(norm(v("a")), norm(v("b")))),
); // prettier-ignore

export const formulas = {
  follow: [
    math(
      sub(i("y"), i("f")), o("="), i("φ"), fence(
        under("<mi>max</mi>", i("k")), sub(v("w"), i("f")), o("·"),
        sub(v("c"), row(i("k"), o("…"), i("k"), o("+"), i("n"), o("−"), n(1))),
        o("+"), sub(i("b"), i("f")),
      ),
    ),
    math(
      v("z"), o("="), v("g"), o("⊙"), i("ReLU"), fence(i("W"), v("y"), o("+"), v("b")),
      o("+"), fence(n(1), o("−"), v("g")), o("⊙"), v("y"),
    ),
    math(h, o("="), o("["), half("→"), o(";"), half("←"), o("]")),
    math(sub(i("ELMo"), i("t")), o("="), mixture),
  ],
  predict: [
    math(p(before), o("="), i("softmax"), sub(fence(i("W"), sub(over(v("h"), "→"), row(t("−"), o(","), i("L"))), o("+"), v("b")), w(i("t")))),
    math(sub(i("p"), "<mtext>both</mtext>"), o("∝"), frac(row(p(before), o("·"), p(after)), row(i("p"), fence(w(i("t")))))),
  ],
  surprise: [
    math(i("S"), fence(w(i("t"))), o("="), o("−"), log2, p(before)),
    math("<mi>PPL</mi>", o("="), `<msup>${n(2)}${row(frac(n(1), i("N")), sub(o("∑"), i("t")), i("S"), fence(w(i("t"))))}</msup>`),
  ],
  map: [math(cosine)],
  mixture: [
    math(sub(i("ELMo"), i("t")), o("="), mixture, o(","), `<mspace width="1em"/>`, v("s"), o("="), i("softmax"), fence(v("w"))),
    math("<mtext>penalty</mtext>", o("="), i("λ"), sub(o("∑"), i("j")), `<msubsup>${i("w")}${i("j")}${n(2)}</msubsup>`),
  ],
  near: [math(cosine)],
  reach: [
    math(
      sub(i("r"), at(i("j"))), o("="),
      frac(norm(`<msubsup>${v("h")}${at(i("j"))}${o("′")}</msubsup>`, o("−"), h), norm(h)),
    ),
  ],
  training: [
    math(
      sub(i("L"), "<mtext>LM</mtext>"), o("="), o("−"), frac(n(1), row(n(2), i("N"))), sub(o("∑"), i("t")),
      sub(i("L"), i("t")),
    ),
    math(sub(i("L"), i("t")), o("="), i("log"), p(before)),
    math(`<mspace width="2em"/>`, o("+"), i("log"), p(after)),
  ],
  tasks: [math(sub(v("x"), i("t")), o("→"), o("["), sub(v("x"), i("t")), o(";"), sub(i("ELMo"), i("t")), o("]"))],
}; // prettier-ignore
