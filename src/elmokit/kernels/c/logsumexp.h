/* log of the sum of exp over all columns of a product, without storing scores; in base 2, which
   saves multiplications. */

#pragma once

#include "convert_rows.h"
#include "product.h"

typedef struct {
    matrix m;
    const float *x;    /* (rows, inner) */
    const float *bias; /* packed like the matrix's columns; columns of padding: very negative */
    float *out;        /* (rows) */
    int64_t rows, inner;
    uint32_t *groups;  /* (rows, num_groups) */
    float *scales;     /* (rows) */
    float *shifts;     /* (rows): about the row's largest score */
    float *sums;       /* (rows, VL): of 2^(score - shift), over some panels */
    float *totals;     /* (rows, VL): over all */
    const float *targets;   /* (rows): a known score, which takes the place of its product */
    const int32_t *columns; /* (rows): its column, or -1 */
    /* all or none */
    float *moments;        /* (rows, VL): of (score - shift) * 2^(score - shift), over some panels */
    float *moment_totals;  /* (rows, VL): over all */
    int32_t *above;        /* (rows, VL): how many scores are above the known one */
} logsumexp_call;

typedef struct {
    logsumexp_call *call;
    int64_t first_row;
} logsumexp_part;

#define SUMS_TOGETHER 576 /* rows whose values and sums fit in the cache; a multiple of ROWS_BLOCK */
#define PANELS_TOGETHER 128 /* summed by themselves, so that small terms are not lost in large sums */
#define SHIFT_BOUND 80.0f /* largest score - shift: keeps sums finite in fp32 */

/* 2^x for x in [-126, 127]; the polynomial is within 2e-7. */
static inline vf exp2_of(vf x) {
    vf shifted = x + 12582912.0f; /* the low bits hold the rounded x */
    vf r = x - (shifted - 12582912.0f);
    vf p = all(1.32669706e-03f);
    p = p * r + 9.67545994e-03f;
    p = p * r + 5.55074252e-02f;
    p = p * r + 2.40221217e-01f;
    p = p * r + 6.93146944e-01f;
    p = p * r + 1.00000012e+00f;
    return (vf)((vu)p + ((vu)shifted << 23));
}

static inline int is_any_above(vf x, float bound) {
#if VL == 16
    return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(bound), _CMP_GT_OQ) != 0;
#else
    vi above = x > all(bound);
    int32_t any = 0;
    for (int v = 0; v < VL; v++) any |= above[v];
    return any;
#endif
}

INLINE void add_scores(logsumexp_part *part, int64_t row, int64_t panel, const float *scores,
                       int with_mean_and_rank) {
    logsumexp_call *call = part->call;
    row += part->first_row;
    vf x[NV], sum = load(call->sums + row * VL), moment = {0};
    for (int v = 0; v < NV; v++)
        x[v] = load(scores + v * VL) + load(call->bias + panel * PANEL + v * VL);
    int64_t own = call->columns[row] - panel * PANEL;
    if (own >= 0 && own < PANEL) {
        float known[PANEL];
        for (int v = 0; v < NV; v++) store(known + v * VL, x[v]);
        known[own] = call->targets[row];
        for (int v = 0; v < NV; v++) x[v] = load(known + v * VL);
    }
    if (with_mean_and_rank) moment = load(call->moments + row * VL);
    vf top = larger(larger(x[0], x[1]), larger(x[2], x[3]));
    float shift = call->shifts[row];
    if (is_any_above(top, shift + SHIFT_BOUND)) {
        float largest = top[0];
        for (int v = 1; v < VL; v++) largest = top[v] > largest ? top[v] : largest;
        float factor = exp2f(shift - largest), *total = call->totals + row * VL;
        if (with_mean_and_rank && shift > -INFINITY) {
            float *moment_total = call->moment_totals + row * VL;
            moment = (moment + sum * (shift - largest)) * factor;
            store(moment_total, (load(moment_total) + load(total) * (shift - largest)) * factor);
        }
        sum *= factor;
        store(total, load(total) * factor);
        shift = call->shifts[row] = largest;
    }
    for (int v = 0; v < NV; v++) {
        vf over = larger(all(-126.0f), x[v] - shift), power = exp2_of(over);
        sum += power;
        if (with_mean_and_rank) moment += power * over;
    }
    store(call->sums + row * VL, sum);
    if (!with_mean_and_rank) return;
    store(call->moments + row * VL, moment);
    vf target = all(call->targets[row]);
    vi above = *(const vi_any *)(call->above + row * VL);
    for (int v = 0; v < NV; v++) above -= x[v] > target;
    *(vi_any *)(call->above + row * VL) = above;
}

static void finish_scores(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    int with_mean_and_rank = ((logsumexp_part *)argument)->call->moments != NULL;
    if (with_mean_and_rank) EACH_ROW add_scores(argument, row, panel, sums, 1);
    else EACH_ROW add_scores(argument, row, panel, sums, 0);
}

/* Add the sums over some panels to those over all. */
static void add_to_totals(logsumexp_call *call, int64_t first_row, int64_t num_rows) {
    for (int64_t at = first_row * VL; at < (first_row + num_rows) * VL; at += VL) {
        store(call->totals + at, load(call->totals + at) + load(call->sums + at));
        store(call->sums + at, (vf){0});
        if (!call->moments) continue;
        store(call->moment_totals + at, load(call->moment_totals + at) + load(call->moments + at));
        store(call->moments + at, (vf){0});
    }
}

static void logsumexp_task(void *argument, int thread, int num_threads) {
    logsumexp_call *call = argument;
    const matrix *m = &call->m;
    int64_t first = call->rows * thread / num_threads;
    int64_t last = call->rows * (thread + 1) / num_threads;
    logsumexp_part part = {call, first};
    for (int64_t row = first; row < last; row++) {
        call->scales[row] = convert_row((int)m->type, call->x + row * call->inner, call->inner,
                                        m->num_groups, call->groups + row * m->num_groups);
        call->shifts[row] = -INFINITY;
        store(call->sums + row * VL, (vf){0});
        store(call->totals + row * VL, (vf){0});
    }
    for (; part.first_row < last; part.first_row += SUMS_TOGETHER) {
        int64_t num_rows = smaller_of(SUMS_TOGETHER, last - part.first_row);
        for (int64_t panel = 0; panel < m->num_panels; panel++) {
            panel_product(m, panel, smaller_of(panel + 1, m->num_panels - 1),
                          call->groups + part.first_row * m->num_groups, m->num_groups,
                          call->scales + part.first_row, num_rows, finish_scores, &part);
            if ((panel + 1) % PANELS_TOGETHER == 0 || panel + 1 == m->num_panels)
                add_to_totals(call, part.first_row, num_rows);
        }
    }
    for (int64_t row = first; row < last; row++) {
        float sum = 0;
        for (int v = 0; v < VL; v++) sum += call->totals[row * VL + v];
        call->out[row] = log2f(sum) + call->shifts[row];
    }
}

void elmokit_logsumexp(logsumexp_call *call, int64_t num_threads) {
    share_products(logsumexp_task, call, (int)num_threads);
}
