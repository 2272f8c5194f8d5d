/* LSTM with projection, forward and backward in time. Steps T, rows B, projection D, cells H (a
   multiple of VL). What is typed is fp32 or bf16; cells, gradients of cells and sums are fp32. */

#pragma once

#include "lstm_cell.h"
#include "product.h"
#include "values.h"

typedef struct {
    matrix recurrent, projection; /* columns: gates, interleaved; D; none: no values */
    int64_t type, num_steps, num_rows, dim, cell_dim;
    void *gates;          /* typed (T, B, 4H): input products, become activations */
    const float *bias;    /* (4H) */
    float *cells;         /* (T + 1, B, H); the first is given */
    void *inners;         /* typed (T, B, H): before the projection */
    float *hiddens;       /* (T + 1, B, D); the first is given */
    void *typed_hiddens;  /* typed (T + 1, B, D); fp32: the same memory */
    lstm_cell parameters;
} lstm_forward;

typedef struct {
    matrix projection, recurrent; /* columns: H; D. projection.values may be null */
    int64_t type, num_steps, num_rows, dim, cell_dim;
    const void *gates;         /* typed (T, B, 4H) */
    const float *cells;        /* (T + 1, B, H) */
    const float *hiddens;      /* (T + 1, B, D) */
    const float *grad_outputs; /* (T, B, D) */
    float *grad_hidden;        /* (B, D): after the last step; becomes that before the first */
    float *grad_cell;          /* (B, H): likewise */
    void *grad_gates;          /* typed (T, B, 4H) */
    void *grad_projected;      /* typed (T, B, D); unused without projection */
    lstm_cell parameters;
} lstm_backward;

typedef struct {
    void *call;
    barrier place;
} lstm_job;

typedef struct {
    void *call;
    int64_t step, first_row;
    int by_rows; /* each thread has its own rows in all steps, and need not wait for others */
} lstm_part;

static lstm_part first_part(void *call, int64_t num_rows, int num_threads) {
    return (lstm_part){call, 0, 0, num_rows >= MIN_ROWS * num_threads};
}

static void meet_others(lstm_job *job, const lstm_part *part, int num_threads) {
    if (!part->by_rows) meet(&job->place, num_threads);
}

/* Prefetch a later row's gates, which do not follow in memory. */
static inline void prefetch_row(int type, const void *gates, int64_t at, int64_t cell_dim) {
    for (int q = 0; q < 4; q++) __builtin_prefetch(place_of(type, gates, at + q * cell_dim));
}

static inline void finish_cell_row(lstm_part *part, int64_t row, int64_t panel, float *sums) {
    lstm_forward *call = part->call;
    int type = (int)call->type;
    int64_t cell_dim = call->cell_dim, unit = panel * VL;
    int64_t position = part->step * call->num_rows + part->first_row + row;
    int64_t gate_row = position * 4 * cell_dim + unit;
    prefetch_row(type, call->gates, gate_row + MAX_TILE * 4 * cell_dim, cell_dim);
    vf gate[4];
    for (int q = 0; q < 4; q++)
        gate[q] = load(sums + q * VL) + load_as(type, call->gates, gate_row + q * cell_dim) +
                  load(call->bias + q * cell_dim + unit);
    float *before = call->cells + position * cell_dim + unit;
    vf inner = run_cell_keeping(&call->parameters, gate, before,
                                before + call->num_rows * cell_dim);
    for (int q = 0; q < 4; q++)
        store_as(type, call->gates, gate_row + q * cell_dim, gate[q]);
    store_as(type, call->inners, position * cell_dim + unit, inner);
    if (call->projection.values) return;
    int64_t out = (position + call->num_rows) * cell_dim + unit;
    store(call->hiddens + out, inner);
    if (type != FP32) store_as(type, call->typed_hiddens, out, inner);
}

static void finish_cell(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    EACH_ROW finish_cell_row(argument, row, panel, sums);
}

static void finish_projection(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    lstm_part *part = argument;
    lstm_forward *call = part->call;
    int64_t column = panel * PANEL, count = smaller_of(PANEL, call->dim - column);
    int64_t to = ((part->step + 1) * call->num_rows + part->first_row + row) * call->dim + column;
    for (int r = 0; r < rows; r++, sums += PANEL, to += call->dim) {
        clip_projected(&call->parameters, sums);
        memcpy(call->hiddens + to, sums, 4 * count);
        for (int64_t k = 0; k < count && call->type != FP32; k++)
            ((uint16_t *)call->typed_hiddens)[to + k] = to_bf16(sums[k]);
    }
}

/* Rows x a matrix, split among threads by rows or panels. */
INLINE void shared_product(const matrix *m, const uint32_t *a, lstm_part *part, int64_t num_rows,
                           finish done, int thread, int num_threads) {
    int by_panel = !part->by_rows && m->num_panels >= num_threads;
    int64_t first = by_panel ? m->num_panels * thread / num_threads : 0;
    int64_t last = by_panel ? m->num_panels * (thread + 1) / num_threads : m->num_panels;
    part->first_row = by_panel ? 0 : num_rows * thread / num_threads;
    int64_t end = by_panel ? num_rows : num_rows * (thread + 1) / num_threads;
    /* the direction alternates: what was read last is still in the cache */
    int64_t step = part->step % 2 ? -1 : 1, panel = step > 0 ? first : last - 1;
    for (int64_t k = first; k < last; k++, panel += step)
        panel_product(m, panel, k + 1 == last ? panel : panel + step,
                      a + part->first_row * m->num_groups, m->num_groups, NULL,
                      end - part->first_row, done, part);
}

static void forward_task(void *argument, int thread, int num_threads) {
    lstm_job *job = argument;
    lstm_forward *call = job->call;
    int type = (int)call->type;
    lstm_part part = first_part(call, call->num_rows, num_threads);
    for (; part.step < call->num_steps; part.step++) {
        int64_t position = part.step * call->num_rows;
        shared_product(&call->recurrent,
                       place_of(type, call->typed_hiddens, position * call->dim), &part,
                       call->num_rows, finish_cell, thread, num_threads);
        meet_others(job, &part, num_threads);
        if (!call->projection.values) continue;
        shared_product(&call->projection,
                       place_of(type, call->inners, position * call->cell_dim), &part,
                       call->num_rows, finish_projection, thread, num_threads);
        meet_others(job, &part, num_threads);
    }
}

void elmokit_lstm_forward(lstm_forward *call, int64_t num_threads) {
    lstm_job job = {.call = call};
    share_products(forward_task, &job, (int)num_threads);
}

/* Gradients of one row's gates at VL cells, from that of the projection's input. */
static inline void gate_gradients(const lstm_part *part, int64_t row, int64_t unit, vf grad) {
    lstm_backward *call = part->call;
    int type = (int)call->type;
    int64_t cell_dim = call->cell_dim, position = part->step * call->num_rows + row;
    int64_t gate_row = position * 4 * cell_dim + unit;
    vf gate[4];
    for (int q = 0; q < 4; q++) gate[q] = load_as(type, call->gates, gate_row + q * cell_dim);
    const float *before = call->cells + position * cell_dim + unit;
    prefetch_row(type, call->gates, gate_row + MAX_TILE * 4 * cell_dim, cell_dim);
    cell_gradient(&call->parameters, gate, load(before), load(before + call->num_rows * cell_dim),
                  grad, call->grad_cell + row * cell_dim + unit);
    for (int q = 0; q < 4; q++)
        store_as(type, call->grad_gates, gate_row + q * cell_dim, gate[q]);
}

static void finish_gates(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    lstm_part *part = argument;
    lstm_backward *call = part->call;
    int64_t unit = panel * PANEL, end = smaller_of(unit + PANEL, call->cell_dim);
    EACH_ROW
    for (int64_t at = unit; at < end; at += VL)
        gate_gradients(part, part->first_row + row, at, load(sums + at - unit));
}

static void finish_hidden(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    lstm_part *part = argument;
    lstm_backward *call = part->call;
    int64_t column = panel * PANEL, count = smaller_of(PANEL, call->dim - column);
    EACH_ROW memcpy(call->grad_hidden + (part->first_row + row) * call->dim + column, sums,
                    4 * count);
}

/* Gradient of a row's output, from above and from the next step, where it was not clipped. */
static void gather_row(const lstm_part *part, int64_t row) {
    lstm_backward *call = part->call;
    int64_t position = part->step * call->num_rows + row, dim = call->dim;
    const float *next = call->grad_hidden + row * dim;
    const float *above = call->grad_outputs + position * dim;
    if (!call->projection.values) {
        for (int64_t unit = 0; unit < dim; unit += VL)
            gate_gradients(part, row, unit, load(above + unit) + load(next + unit));
        return;
    }
    const float *out = call->hiddens + (position + call->num_rows) * dim;
    for (int64_t k = 0; k < dim; k++) {
        int is_free = is_unclipped(&call->parameters, out[k]);
        set_as((int)call->type, call->grad_projected, position * dim + k,
               is_free ? above[k] + next[k] : 0.0f);
    }
}

static void backward_task(void *argument, int thread, int num_threads) {
    lstm_job *job = argument;
    lstm_backward *call = job->call;
    int type = (int)call->type;
    lstm_part part = first_part(call, call->num_rows, num_threads);
    for (part.step = call->num_steps - 1; part.step >= 0; part.step--) {
        int64_t position = part.step * call->num_rows;
        FOR_SHARE(row, call->num_rows) gather_row(&part, row);
        meet_others(job, &part, num_threads);
        if (call->projection.values) {
            shared_product(&call->projection,
                           place_of(type, call->grad_projected, position * call->dim), &part,
                           call->num_rows, finish_gates, thread, num_threads);
            meet_others(job, &part, num_threads);
        }
        shared_product(&call->recurrent,
                       place_of(type, call->grad_gates, position * 4 * call->cell_dim), &part,
                       call->num_rows, finish_hidden, thread, num_threads);
        meet_others(job, &part, num_threads);
    }
}

void elmokit_lstm_backward(lstm_backward *call, int64_t num_threads) {
    lstm_job job = {.call = call};
    share_products(backward_task, &job, (int)num_threads);
}
