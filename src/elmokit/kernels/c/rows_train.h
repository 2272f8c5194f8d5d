/* Operations on rows: highway mixture, sampled softmax, column sums, scattering. Typed values are
   fp32 or bf16. The width of a highway is a multiple of VL. */

#pragma once

#include "values.h"

typedef struct {
    int64_t type, num_rows, dim;
    const void *x;                      /* typed (U, F), like all that follow */
    void *gate, *transform;             /* forward: products, become sigmoid(+ bias), + bias */
    const float *gate_bias, *transform_bias;
    void *out;
    const void *grad_out;
    void *grad_gate, *grad_transform;   /* before the sigmoid, before the relu */
    void *grad_x;                       /* without that through the products */
} highway_call;

static void highway_forward_task(void *argument, int thread, int num_threads) {
    highway_call *call = argument;
    int type = (int)call->type;
    FOR_SHARE(row, call->num_rows)
        for (int64_t column = 0; column < call->dim; column += VL) {
            int64_t at = row * call->dim + column;
            vf gate = vsigmoid(load_as(type, call->gate, at) + load(call->gate_bias + column));
            vf transform = load_as(type, call->transform, at) + load(call->transform_bias + column);
            store_as(type, call->gate, at, gate);
            store_as(type, call->transform, at, transform);
            vf x = load_as(type, call->x, at);
            store_as(type, call->out, at, gate * larger((vf){0}, transform) + (1.0f - gate) * x);
        }
}

static void highway_backward_task(void *argument, int thread, int num_threads) {
    highway_call *call = argument;
    int type = (int)call->type;
    FOR_SHARE(v, call->num_rows * call->dim / VL) {
        int64_t at = v * VL;
        vf grad = load_as(type, call->grad_out, at), gate = load_as(type, call->gate, at);
        vf transform = load_as(type, call->transform, at), x = load_as(type, call->x, at);
        vf value = larger((vf){0}, transform);
        store_as(type, call->grad_gate, at, grad * (value - x) * (gate - gate * gate));
        store_as(type, call->grad_transform, at, if_less((vf){0}, transform, grad * gate, (vf){0}));
        store_as(type, call->grad_x, at, grad * (1.0f - gate));
    }
}

void elmokit_highway_forward(highway_call *call, int64_t num_threads) {
    share(highway_forward_task, call, (int)num_threads);
}

void elmokit_highway_backward(highway_call *call, int64_t num_threads) {
    share(highway_backward_task, call, (int)num_threads);
}

/* ---- sampled softmax: rows of products with K candidates become probabilities ---- */

typedef struct {
    int64_t type, num_rows, num_candidates;
    void *logits;               /* typed (X, K): products, become probabilities */
    const float *bias;          /* (K) */
    const float *target_logits; /* (X) */
    const int64_t *hits;        /* (X): the candidate that is the row's target, or -1 */
    float *losses, *target_probs; /* (X) */
    float *buffers;             /* (threads, K) */
} softmax_call;

static void softmax_task(void *argument, int thread, int num_threads) {
    softmax_call *call = argument;
    int type = (int)call->type;
    int64_t count = call->num_candidates, whole = count - count % VL;
    float *row = call->buffers + thread * count;
    FOR_SHARE(x, call->num_rows) {
        float target = call->target_logits[x], lanes[VL];
        vf top = all(target);
        for (int64_t k = 0; k < whole; k += VL)
            store(row + k, load_as(type, call->logits, x * count + k) + load(call->bias + k));
        for (int64_t k = whole; k < count; k++)
            row[k] = value_as(type, call->logits, x * count + k) + call->bias[k];
        if (call->hits[x] >= 0) row[call->hits[x]] = -INFINITY;
        for (int64_t k = 0; k < whole; k += VL) top = larger(load(row + k), top);
        store(lanes, top);
        float largest = target;
        for (int k = 0; k < VL; k++) largest = lanes[k] > largest ? lanes[k] : largest;
        for (int64_t k = whole; k < count; k++) largest = row[k] > largest ? row[k] : largest;
        vf sums = {0};
        for (int64_t k = 0; k < whole; k += VL) {
            vf value = vexp(load(row + k) - largest);
            sums += value;
            store(row + k, value);
        }
        store(lanes, sums);
        float own = expf(target - largest), sum = own;
        for (int k = 0; k < VL; k++) sum += lanes[k];
        for (int64_t k = whole; k < count; k++) sum += row[k] = expf(row[k] - largest);
        if (call->hits[x] >= 0) row[call->hits[x]] = 0;
        float scale = 1.0f / sum;
        for (int64_t k = 0; k < whole; k += VL)
            store_as(type, call->logits, x * count + k, load(row + k) * scale);
        for (int64_t k = whole; k < count; k++)
            set_as(type, call->logits, x * count + k, row[k] * scale);
        call->target_probs[x] = own * scale;
        call->losses[x] = logf(sum) + largest - target;
    }
}

void elmokit_softmax(softmax_call *call, int64_t num_threads) {
    share(softmax_task, call, (int)num_threads);
}

/* ---- sums of columns, weighted ---- */

typedef struct {
    int64_t type, num_rows, num_columns;
    const void *values;   /* typed (X, N) */
    const float *weights; /* (X), or null: all 1 */
    float *out;           /* (N) */
} sums_call;

#define COLUMNS_TOGETHER (8 * VL)

static void sums_task(void *argument, int thread, int num_threads) {
    sums_call *call = argument;
    int type = (int)call->type;
    int64_t blocks = (call->num_columns + COLUMNS_TOGETHER - 1) / COLUMNS_TOGETHER;
    FOR_SHARE(block, blocks) {
        int64_t first = block * COLUMNS_TOGETHER;
        int64_t count = smaller_of(COLUMNS_TOGETHER, call->num_columns - first);
        vf sum[8] = {{0}};
        float rest[VL] = {0};
        for (int64_t row = 0; row < call->num_rows; row++) {
            float weight = call->weights ? call->weights[row] : 1.0f;
            int64_t at = row * call->num_columns + first;
            for (int v = 0; v < count / VL; v++)
                sum[v] += weight * load_as(type, call->values, at + v * VL);
            for (int64_t k = count - count % VL; k < count; k++)
                rest[k % VL] += weight * value_as(type, call->values, at + k);
        }
        for (int v = 0; v < count / VL; v++) store(call->out + first + v * VL, sum[v]);
        memcpy(call->out + first + count - count % VL, rest, 4 * (count % VL));
    }
}

void elmokit_column_sums(sums_call *call, int64_t num_threads) {
    share(sums_task, call, (int)num_threads);
}

/* ---- rows added to some rows of a matrix ---- */

typedef struct {
    int64_t num_rows, dim;
    float *out;            /* (V, D) */
    const int64_t *places; /* (R): in V, repeats allowed */
    const float *rows;     /* (R, D) */
} scatter_call;

static void scatter_task(void *argument, int thread, int num_threads) {
    scatter_call *call = argument;
    int64_t begin = call->dim * thread / num_threads, end = call->dim * (thread + 1) / num_threads;
    for (int64_t row = 0; row < call->num_rows; row++) {
        float *out = call->out + call->places[row] * call->dim;
        const float *from = call->rows + row * call->dim;
        for (int64_t k = begin; k < end; k++) out[k] += from[k];
    }
}

void elmokit_scatter_rows(scatter_call *call, int64_t num_threads) {
    share(scatter_task, call, (int)num_threads);
}
