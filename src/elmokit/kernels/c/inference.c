/* Inference: character CNN, highway and linear layers, LSTM with projection. One translation unit;
   parsed by elmokit.kernels.build.
   Shapes: B sentences, P packed positions, U distinct tokens, C characters, E character embedding,
   F filters, D projection, H cells (padded to a multiple of VL; the padding stays zero). */

#include "cnn_windows.h"
#include "convert_rows.h"
#include "logsumexp.h"
#include "lstm_cell.h"

int64_t elmokit_vector_length(void) { return VL; }

/* Types with instructions of their own, as bits 1 << BF16 and 1 << INT8. */
int64_t elmokit_instructions(void) {
    return HAS_BF16 << BF16 | HAS_INT8 << INT8;
}

/* Whether bf16 and int8 products use the matrix unit. */
int64_t elmokit_has_tiles(void) {
    prepare_tiles();
    return tiles_allowed;
}

/* Whether bf16 products are faster than fp32: not on Intel's vector unit. */
int64_t elmokit_has_quick_bf16(void) {
#if VL == 16 && defined(__AVX512BF16__)
    return elmokit_has_tiles() || !__builtin_cpu_is("intel");
#else
    return 0;
#endif
}

static void store_groups(int type, uint32_t *row, int64_t column, vf value) {
    if (type == FP32) {
        store((float *)row + column, value);
        return;
    }
    store_bf16((uint16_t *)row + column, value);
}

/* ---- linear and highway layers ---- */

typedef struct {
    matrix m;
    const float *x, *bias; /* (rows, x_stride); packed like the matrix's columns */
    float *out;            /* (rows, out_stride) */
    int64_t rows, inner, x_stride, columns, out_stride, is_highway;
    uint32_t *groups;      /* (rows, num_groups), or null where x is read as it is */
    float *scales;         /* (rows) */
} linear_call;

typedef struct {
    linear_call *call;
    const uint32_t *a;
    int64_t stride, first_row;
    atomic_llong next;
    barrier place;
} linear_job;

typedef struct {
    linear_call *call;
    int64_t first_row;
} linear_part;

static inline void finish_linear_row(linear_part *part, int64_t row, int64_t panel, float *sums) {
    linear_call *call = part->call;
    for (int v = 0; v < NV; v++)
        store(sums + v * VL, load(sums + v * VL) + load(call->bias + panel * PANEL + v * VL));
    int64_t width = call->is_highway ? 2 * VL : PANEL, column = panel * width;
    float *out = call->out + (part->first_row + row) * call->out_stride + column;
    width = smaller_of(width, call->columns - column);
    if (call->is_highway) { /* transform in the first half of a panel, gate in the second */
        float before[2 * VL] = {0};
        memcpy(before, call->x + (part->first_row + row) * call->x_stride + column, 4 * width);
        for (int v = 0; v < 2; v++) {
            vf gate = vsigmoid(load(sums + (v + 2) * VL));
            vf value = larger((vf){0}, load(sums + v * VL));
            store(sums + v * VL, fused(gate, value, (1.0f - gate) * load(before + v * VL)));
        }
    }
    memcpy(out, sums, 4 * width);
}

static void finish_linear(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    EACH_ROW finish_linear_row(argument, row, panel, sums);
}

static void linear_task(void *argument, int thread, int num_threads) {
    linear_job *job = argument;
    linear_call *call = job->call;
    if (call->groups) {
        FOR_SHARE(row, call->rows)
            call->scales[row] =
                convert_row((int)call->m.type, call->x + row * call->x_stride, call->inner,
                            call->m.num_groups, call->groups + row * call->m.num_groups);
        meet(&job->place, num_threads);
    }
    int64_t height = call->m.num_panels >= 4 * num_threads ? call->rows : ROWS_BLOCK;
    int64_t blocks = (call->rows + height - 1) / height;
    int64_t items = blocks * call->m.num_panels, following;
    for (int64_t item = atomic_fetch_add(&job->next, 1); item < items; item = following) {
        following = atomic_fetch_add(&job->next, 1);
        linear_part part = {call, item % blocks * height};
        int64_t panel = item / blocks;
        int64_t next = following < items ? following / blocks : panel;
        panel_product(&call->m, panel, next, job->a + part.first_row * job->stride, job->stride,
                      call->scales + part.first_row, smaller_of(height, call->rows - part.first_row),
                      finish_linear, &part);
    }
}

void elmokit_linear(linear_call *call, int64_t num_threads) {
    linear_job job = {.call = call};
    if (!call->rows) return;
    job.a = call->groups ? call->groups : (const uint32_t *)call->x;
    job.stride = call->groups ? call->m.num_groups : call->x_stride;
    share_products(linear_task, &job, (int)num_threads);
}

/* ---- character CNN: embedding, convolutions, maximum over positions, activation ---- */

typedef struct {
    matrix m;
    int64_t width, count, first; /* characters, filters, first column of the result */
    const float *bias, *padding; /* (panels * PANEL): bias; answer to a window of padding alone */
} convolution;

typedef struct {
    const convolution *convolutions;
    int64_t num_convolutions, num_words, max_characters, embedding_dim, out_stride, is_tanh, type;
    const uint32_t *typed_embedding; /* (ids, E) in groups of `type` */
    const uint16_t *char_ids;  /* (U, C) */
    const int32_t *lengths;    /* (U): characters before the padding */
    float *out;                /* (U, out_stride) */
    uint32_t *buffers;         /* (threads, WORDS_TOGETHER, C, groups of E), and
                                  TILE_ROWS characters more */
} cnn_call;

static void convolve_word(const cnn_call *call, const convolution *one, int64_t panel,
                          const uint32_t *characters, int64_t word) {
    int64_t windows = call->max_characters - one->width + 1, length = call->lengths[word];
    int any_padding = length < windows;
    vf best[NV];
    for (int v = 0; v < NV; v++)
        best[v] = any_padding ? load(one->padding + panel * PANEL + v * VL) : all(-INFINITY);
    best_windows(&one->m, panel, characters, character_groups(call->type, call->embedding_dim),
                 any_padding ? length : windows, best, NULL);
    float result[PANEL] __attribute__((aligned(64)));
    for (int v = 0; v < NV; v++) {
        vf value = best[v] + load(one->bias + panel * PANEL + v * VL);
        store(result + v * VL, call->is_tanh ? vtanh(value) : larger((vf){0}, value));
    }
    memcpy(call->out + word * call->out_stride + one->first + panel * PANEL, result,
           4 * smaller_of(PANEL, one->count - panel * PANEL));
}

#include "cnn_words.h"

void elmokit_char_cnn(cnn_call *call, int64_t num_threads) {
    cnn_job job = {.call = call};
    share_products(cnn_task, &job, (int)num_threads);
}

/* ---- LSTM with projection over packed steps: the rows of step 0, of step 1, … ---- */

typedef struct {
    matrix input, recurrent, projection; /* projection.values is null where there is none */
    int64_t num_steps, dim, cell_dim; /* cell_dim: padded */
    const int64_t *num_rows;       /* of each step; never rising */
    const float *x;                /* (P, input_dim) */
    int64_t input_dim;
    const float *bias;             /* (4 H), in panels */
    uint32_t *x_groups;            /* (P, input.num_groups) */
    float *x_scales;               /* (P) */
    float *gates;                  /* (H / VL, gates_rows, (i, f, g, o) x VL): input products, bias */
    int64_t gates_rows;            /* GATE_ROWS, or the rows of the first step if more */
    const float *residual;         /* (P, D) added to what goes out, or null */
    int64_t num_sentences;         /* B */
    float *hidden, *cell;          /* (B, D), (H / VL, B, VL): advanced in place */
    float *out;                    /* (P, D) */
    const int64_t *targets;        /* (P) addresses for the same values, 0 for nowhere; or null */
    uint32_t *hidden_groups;       /* (B, recurrent.num_groups) */
    uint32_t *inner_groups;        /* (B, inner_stride) */
    int64_t inner_stride;          /* projection.num_groups or more */
    float *inner;                  /* (B, H): for int8, and where there is no projection */
    float *hidden_scales, *inner_scales; /* (B) */
    lstm_cell parameters;
} lstm_call;

typedef struct {
    lstm_call *call;
    barrier place;
} lstm_job;

typedef struct {
    lstm_call *call;
    int64_t position, first_row; /* packed position of the step's row 0 */
    int64_t made_from;           /* packed position of row 0 of gates */
} lstm_step;

static void finish_gates(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    lstm_call *call = ((lstm_step *)argument)->call;
    float *gates = call->gates + (panel * call->gates_rows + row) * PANEL;
    for (int at = 0; at < rows * PANEL; at += VL)
        store(gates + at, load(sums + at) + load(call->bias + panel * PANEL + at % PANEL));
}

static void make_gates(lstm_step *step, int64_t panel, int64_t next, int64_t rows) {
    lstm_call *call = step->call;
    panel_product(&call->input, panel, next,
                  call->x_groups + step->made_from * call->input.num_groups,
                  call->input.num_groups, call->x_scales + step->made_from, rows, finish_gates,
                  step);
}

/* The cells of all rows before their outputs: the processor waits less for results of one row. */
static void finish_cell(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    lstm_step *step = argument;
    lstm_call *call = step->call;
    int64_t made = step->position + row - step->made_from;
    const float *gates = call->gates + (panel * call->gates_rows + made) * PANEL;
    float *cell = call->cell + (panel * call->num_sentences + row) * VL;
    for (int r = 0; r < rows; r++) {
        vf gate[3];
        for (int q = 0; q < 3; q++)
            gate[q] = load(sums + r * PANEL + q * VL) + load(gates + r * PANEL + q * VL);
        vf c = next_cell(gate[0], gate[1], gate[2], load(cell + r * VL));
        store(cell + r * VL, clip_cell(&call->parameters, c));
    }
    for (int r = 0; r < rows; r++, row++) {
        int64_t at = r * PANEL + 3 * VL;
        vf inner = cell_output(load(sums + at) + load(gates + at), load(cell + r * VL));
        if (call->inner) store(call->inner + row * call->cell_dim + panel * VL, inner);
        else
            store_groups((int)call->projection.type,
                         call->inner_groups + row * call->inner_stride, panel * VL, inner);
    }
}

/* Store some columns of a row: as hidden state and, plus residual, as output. */
static void emit(const lstm_step *step, int64_t row, int64_t column, const float *values,
                 int64_t count) {
    lstm_call *call = step->call;
    memcpy(call->hidden + row * call->dim + column, values, 4 * count);
    float *out = call->out + (step->position + row) * call->dim + column;
    if (call->residual) {
        const float *add = call->residual + (step->position + row) * call->dim + column;
        for (int64_t k = 0; k < count; k++) out[k] = values[k] + add[k];
    } else {
        memcpy(out, values, 4 * count);
    }
    if (call->targets && call->targets[step->position + row])
        memcpy((float *)(intptr_t)call->targets[step->position + row] + column, out, 4 * count);
    uint32_t *groups = call->hidden_groups + row * call->recurrent.num_groups;
    if (call->recurrent.type == FP32) memcpy(groups + column, values, 4 * count);
    else if (call->recurrent.type == BF16)
        for (int64_t k = 0; k < count; k++) ((uint16_t *)groups)[column + k] = to_bf16(values[k]);
}

static void finish_projection(void *argument, int64_t row, int rows, int64_t panel, float *sums) {
    lstm_step *step = argument;
    lstm_call *call = step->call;
    EACH_ROW {
        clip_projected(&call->parameters, sums);
        emit(step, step->first_row + row, panel * PANEL, sums,
             smaller_of(PANEL, call->dim - panel * PANEL));
    }
}

static void lstm_task(void *argument, int thread, int num_threads) {
    lstm_job *job = argument;
    lstm_call *call = job->call;
    const matrix *recurrent = &call->recurrent, *projection = &call->projection;
    int64_t first = recurrent->num_panels * thread / num_threads;
    int64_t last = recurrent->num_panels * (thread + 1) / num_threads;
    lstm_step step = {call, 0, 0, 0};
    int64_t made = 0, all_rows = 0; /* made: packed positions whose gates were computed */
    for (int64_t t = 0; t < call->num_steps; t++) all_rows += call->num_rows[t];
    FOR_SHARE(row, all_rows)
        call->x_scales[row] = convert_row((int)call->input.type, call->x + row * call->input_dim,
                                          call->input_dim, call->input.num_groups,
                                          call->x_groups + row * call->input.num_groups);
    meet(&job->place, num_threads);
    for (int64_t t = 0; t < call->num_steps; step.position += call->num_rows[t++]) {
        int64_t rows = call->num_rows[t];
        int together = 0; /* gates of a single step are computed panel by panel */
        if (step.position == made) {
            step.made_from = made;
            int64_t steps = 0;
            while (t + steps < call->num_steps &&
                   (!steps || made + call->num_rows[t + steps] - step.made_from <= call->gates_rows))
                made += call->num_rows[t + steps++];
            together = steps == 1;
            for (int64_t k = first; k < last && !together; k++)
                make_gates(&step, k, k + 1 < last ? k + 1 : k, made - step.made_from);
        }
        int64_t begin = rows * thread / num_threads, end = rows * (thread + 1) / num_threads;
        if (t == 0 || recurrent->type == INT8) { /* `emit` converts fp32 and bf16 */
            for (int64_t row = begin; row < end; row++)
                call->hidden_scales[row] = convert_row(
                    (int)recurrent->type, call->hidden + row * call->dim, call->dim,
                    recurrent->num_groups, call->hidden_groups + row * recurrent->num_groups);
            meet(&job->place, num_threads);
        }
        /* The direction alternates: what was read last is still in the cache. */
        for (int64_t k = first; k < last; k++) {
            int64_t panel = t % 2 ? first + last - 1 - k : k;
            int64_t next = k + 1 == last ? panel : panel + (t % 2 ? -1 : 1);
            if (together) make_gates(&step, panel, next, rows);
            panel_product(recurrent, panel, next, call->hidden_groups, recurrent->num_groups,
                          call->hidden_scales, rows, finish_cell, &step);
        }
        meet(&job->place, num_threads);
        if (!projection->values) {
            for (int64_t row = begin; row < end; row++)
                emit(&step, row, 0, call->inner + row * call->cell_dim, call->dim);
            meet(&job->place, num_threads);
            continue;
        }
        if (projection->type == INT8) {
            for (int64_t row = begin; row < end; row++)
                call->inner_scales[row] = convert_row(
                    INT8, call->inner + row * call->cell_dim, call->cell_dim,
                    projection->num_groups, call->inner_groups + row * call->inner_stride);
            meet(&job->place, num_threads);
        }
        int by_panel = projection->num_panels >= num_threads;
        int64_t from = by_panel ? projection->num_panels * thread / num_threads : 0;
        int64_t to = by_panel ? projection->num_panels * (thread + 1) / num_threads
                              : projection->num_panels;
        step.first_row = by_panel ? 0 : begin;
        for (int64_t k = from; k < to; k++) {
            int64_t panel = t % 2 ? from + to - 1 - k : k;
            int64_t next = k + 1 == to ? panel : panel + (t % 2 ? -1 : 1);
            panel_product(projection, panel, next,
                          call->inner_groups + step.first_row * call->inner_stride,
                          call->inner_stride, call->inner_scales + step.first_row,
                          by_panel ? rows : end - begin, finish_projection, &step);
        }
        step.first_row = 0;
        meet(&job->place, num_threads);
    }
}

void elmokit_lstm(lstm_call *call, int64_t num_threads) {
    lstm_job job = {.call = call};
    share_products(lstm_task, &job, (int)num_threads);
}
