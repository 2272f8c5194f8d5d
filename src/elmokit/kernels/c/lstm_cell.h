/* One LSTM cell, forward and backward, VL cells at a time; gates in the order i, f, g, o. Fields of
   `lstm_cell` have the names of LSTMConfig. elmokit/bilm/lstmp.py defines the cell and names its
   other spellings. */

#pragma once

#include "vector.h"

typedef struct {
    float cell_clip, projection_clip; /* 0: none */
} lstm_cell;

/* At the bound a gate is within 1e-11 of 0 or 1, and a product of three exponentials is finite. */
#define GATE_BOUND 25.0f

/* sigmoid(f) c + sigmoid(i) tanh(g) */
static inline vf next_cell(vf i, vf f, vf g, vf c) {
    vf a = 1.0f + exp_of(clip(-i, GATE_BOUND)), b = 1.0f + exp_of(clip(-f, GATE_BOUND));
    vf e = expm1_of(clip(g + g, GATE_BOUND));
    vf ae = a * (e + 2.0f);
    return fused(c, ae, e * b) / (ae * b);
}
/* sigmoid(o) tanh(c) */
static inline vf cell_output(vf o, vf c) {
    vf e = expm1_of(clip(c + c, GATE_BOUND));
    return e / ((1.0f + exp_of(clip(-o, GATE_BOUND))) * (e + 2.0f));
}

static inline vf clip_cell(const lstm_cell *p, vf c) {
    return p->cell_clip > 0 ? clip(c, p->cell_clip) : c;
}

/* Training: advances the cells, and replaces the gates by their activations, for the gradient. */
static inline vf run_cell_keeping(const lstm_cell *p, vf gate[4], const float *before,
                                  float *after) {
    for (int q = 0; q < 4; q++) gate[q] = q == 2 ? vtanh(gate[q]) : vsigmoid(gate[q]);
    vf cell = clip_cell(p, gate[1] * load(before) + gate[0] * gate[2]);
    store(after, cell);
    return gate[3] * vtanh(cell);
}

/* From the gradient of the projection's input to those of the gates, replacing their activations in
   `gate`; `grad_cell` goes from after the step to before it.
   tanh: y' = 1 - y²; sigmoid: y' = y - y² */
static inline void cell_gradient(const lstm_cell *p, vf gate[4], vf before, vf after, vf grad,
                                 float *grad_cell) {
    vf i = gate[0], f = gate[1], g = gate[2], o = gate[3], squashed = vtanh(after);
    vf grad_c = load(grad_cell) + grad * o * (1.0f - squashed * squashed);
    if (p->cell_clip > 0) grad_c = if_less(size_of(after), all(p->cell_clip), grad_c, (vf){0});
    store(grad_cell, grad_c * f);
    gate[0] = grad_c * g * (i - i * i);
    gate[1] = grad_c * before * (f - f * f);
    gate[2] = grad_c * i * (1.0f - g * g);
    gate[3] = grad * squashed * (o - o * o);
}

/* Clip PANEL values after the projection. */
static inline void clip_projected(const lstm_cell *p, float *values) {
    if (p->projection_clip > 0)
        for (int v = 0; v < NV; v++)
            store(values + v * VL, clip(load(values + v * VL), p->projection_clip));
}

/* Whether a value was not clipped after the projection, so that its gradient passes. */
static inline int is_unclipped(const lstm_cell *p, float value) {
    return !(p->projection_clip > 0) || fabsf(value) < p->projection_clip;
}
