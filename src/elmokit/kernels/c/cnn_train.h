/* Character convolutions with the maximum over positions, and their gradient, which only reaches
   the winning window of each filter. Words U, characters C, embedding E, filters F. Of the equal
   windows inside the padding only one is computed. */

#pragma once

#include "cnn_windows.h"
#include "values.h"

typedef struct {
    matrix m;                    /* columns: filters; inner (width, E) */
    const float *weight, *bias;  /* (count, width, E), (count) */
    float *grad_weight, *grad_bias;
    int64_t width, count, first; /* first: column of the result */
} train_convolution;

typedef struct {
    train_convolution *convolutions;
    int64_t num_convolutions, num_words, max_characters, embedding_dim, num_filters, num_ids;
    int64_t is_tanh, type;
    const uint32_t *typed_embedding; /* typed (ids, E) */
    const float *embedding;      /* (ids, E) */
    const int64_t *char_ids;     /* (U, C) */
    void *out;                   /* typed (U, F): activated */
    uint8_t *positions;          /* (U, F): the winners */
    uint32_t *buffers;           /* (threads, WORDS_TOGETHER, C, E), and TILE_ROWS
                                    characters more */
    const void *grad_out;        /* typed (U, F) */
    float *grad_answers;         /* (F, U) */
    uint8_t *winners;            /* (F, U) */
    float *characters;           /* (U, C, E) */
    float *tables;               /* (TABLES, ids, E), zeros */
    float *grad_embedding;       /* (ids, E) */
} cnn_call;

/* Columns before the padding at the end of a row. */
static int64_t length_of(const cnn_call *call, const int64_t *ids) {
    int64_t length = call->max_characters;
    while (length > 0 && ids[length - 1] == ids[call->max_characters - 1]) length--;
    return length;
}

static void convolve_word(const cnn_call *call, const train_convolution *one, int64_t panel,
                          const uint32_t *characters, int64_t word) {
    const int64_t *ids = call->char_ids + word * call->max_characters;
    int64_t used = smaller_of(length_of(call, ids) + 1, call->max_characters - one->width + 1);
    vf best[NV], where[NV];
    for (int v = 0; v < NV; v++) best[v] = all(-INFINITY), where[v] = (vf){0};
    best_windows(&one->m, panel, characters, character_groups(call->type, call->embedding_dim),
                 used, best, where);
    int64_t count = smaller_of(PANEL, one->count - panel * PANEL);
    int64_t to = word * call->num_filters + one->first + panel * PANEL;
    float answers[PANEL], winners[PANEL];
    for (int v = 0; v < NV; v++)
        store(answers + v * VL, best[v]), store(winners + v * VL, where[v]);
    for (int64_t k = 0; k < count; k++) {
        float value = answers[k] + one->bias[panel * PANEL + k];
        value = call->is_tanh ? tanhf(value) : value < 0 ? 0 : value;
        set_as((int)call->type, call->out, to + k, value);
        call->positions[to + k] = (uint8_t)winners[k];
    }
}

#include "cnn_words.h"

void elmokit_cnn_forward(cnn_call *call, int64_t num_threads) {
    cnn_job job = {.call = call};
    share_products(cnn_task, &job, (int)num_threads);
}

/* Gradient of one filter's weights: over all words, in order. `size` is width x E; `whole`: it is a
   constant number of vectors, which stay in registers. */
INLINE void filter_gradient(const cnn_call *call, const train_convolution *one, int64_t f,
                            int64_t size, int whole) {
    const float *grads = call->grad_answers + (one->first + f) * call->num_words;
    const uint8_t *positions = call->winners + (one->first + f) * call->num_words;
    int64_t dim = call->embedding_dim;
    vf total[MAX_WINDOW / VL] = {{0}};
    float bias = 0, *rest = (float *)total;
    for (int64_t word = 0; word < call->num_words; word++) {
        const float *window =
            call->characters + (word * call->max_characters + positions[word]) * dim;
        float grad = grads[word];
        bias += grad;
        if (whole)
#pragma GCC unroll 28
            for (int64_t v = 0; v < size / VL; v++) total[v] += grad * load(window + v * VL);
        else
            for (int64_t k = 0; k < size; k++) rest[k] += grad * window[k];
    }
    memcpy(one->grad_weight + f * size, total, 4 * size);
    one->grad_bias[f] = bias;
}

/* Gradients of the characters of a few words from one filter. */
INLINE void characters_gradient(const cnn_call *call, const train_convolution *one, int64_t f,
                                int64_t first_word, int64_t num_words, float *grad_characters,
                                int64_t size, int whole) {
    const float *grads = call->grad_answers + (one->first + f) * call->num_words + first_word;
    const uint8_t *positions = call->winners + (one->first + f) * call->num_words + first_word;
    const float *weight = one->weight + f * size;
    int64_t dim = call->embedding_dim;
    for (int64_t word = 0; word < num_words; word++) {
        float *to = grad_characters + (word * call->max_characters + positions[word]) * dim;
        float grad = grads[word];
        if (whole)
#pragma GCC unroll 28
            for (int64_t v = 0; v < size / VL; v++)
                store(to + v * VL, load(to + v * VL) + grad * load(weight + v * VL));
        else
            for (int64_t k = 0; k < size; k++) to[k] += grad * weight[k];
    }
}

/* With the usual embedding, window sizes are constants. */
#define FOR_SIZE(width, dim, FUNCTION, ...)                           \
    switch ((dim) == 16 ? (width) : 0) {                              \
    case 1: FUNCTION(__VA_ARGS__, 16, 1); break;                      \
    case 2: FUNCTION(__VA_ARGS__, 32, 1); break;                      \
    case 3: FUNCTION(__VA_ARGS__, 48, 1); break;                      \
    case 4: FUNCTION(__VA_ARGS__, 64, 1); break;                      \
    case 5: FUNCTION(__VA_ARGS__, 80, 1); break;                      \
    case 6: FUNCTION(__VA_ARGS__, 96, 1); break;                      \
    case 7: FUNCTION(__VA_ARGS__, 112, 1); break;                     \
    default: FUNCTION(__VA_ARGS__, (width) * (dim), 0);               \
    }

/* Gradients before the activation, and winners, filter by filter; characters of all words. */
static void prepare_gradient(const cnn_call *call, int thread, int num_threads) {
    int type = (int)call->type;
    int64_t filters = call->num_filters, words = call->num_words, dim = call->embedding_dim;
    for (int64_t block = filters * thread / num_threads;
         block < filters * (thread + 1) / num_threads; block += FILTERS_TOGETHER) {
        int64_t end = smaller_of(block + FILTERS_TOGETHER, filters * (thread + 1) / num_threads);
        for (int64_t some = 0; some < words; some += WORDS_TOGETHER)
            for (int64_t f = block; f < end; f++)
                for (int64_t word = some; word < smaller_of(some + WORDS_TOGETHER, words); word++) {
                    int64_t at = word * filters + f;
                    float out = value_as(type, call->out, at);
                    float grad = value_as(type, call->grad_out, at);
                    grad = call->is_tanh ? grad * (1.0f - out * out) : out > 0 ? grad : 0.0f;
                    call->grad_answers[f * words + word] = grad;
                    call->winners[f * words + word] = call->positions[at];
                }
    }
    int64_t characters = words * call->max_characters;
    FOR_SHARE(c, characters)
        memcpy(call->characters + c * dim, call->embedding + call->char_ids[c] * dim, 4 * dim);
}

/* Gradients of the embedding from one part of the words: into the part's own table. */
static void table_gradient(const cnn_call *call, int64_t part, float *grad_characters) {
    int64_t dim = call->embedding_dim, row = call->max_characters * dim;
    float *table = call->tables + part * call->num_ids * dim;
    int64_t end = call->num_words * (part + 1) / TABLES;
    for (int64_t first = call->num_words * part / TABLES; first < end; first += FEW_WORDS) {
        int64_t words = smaller_of(FEW_WORDS, end - first);
        memset(grad_characters, 0, 4 * words * row);
        int64_t widest = 0;
        for (int64_t c = 0; c < call->num_convolutions; c++) {
            const train_convolution *one = call->convolutions + c;
            widest = one->width > widest ? one->width : widest;
            for (int64_t f = 0; f < one->count; f++)
                FOR_SIZE(one->width, dim, characters_gradient, call, one, f, first, words,
                         grad_characters)
        }
        for (int64_t word = 0; word < words; word++) {
            const int64_t *ids = call->char_ids + (first + word) * call->max_characters;
            int64_t used = smaller_of(length_of(call, ids) + widest, call->max_characters);
            for (int64_t c = 0; c < used; c++)
                for (int64_t e = 0; e < dim; e++)
                    table[ids[c] * dim + e] += grad_characters[word * row + c * dim + e];
        }
    }
}

typedef struct {
    cnn_call *call;
    atomic_llong next;
    barrier place;
} gradient_job;

static void cnn_backward_task(void *argument, int thread, int num_threads) {
    gradient_job *job = argument;
    cnn_call *call = job->call;
    int64_t dim = call->embedding_dim, row = call->max_characters * dim;
    prepare_gradient(call, thread, num_threads);
    meet(&job->place, num_threads);
    for (int64_t c = 0; c < call->num_convolutions; c++) {
        const train_convolution *one = call->convolutions + c;
        FOR_SHARE(f, one->count)
            FOR_SIZE(one->width, dim, filter_gradient, call, one, f)
    }
    for (;;) {
        int64_t part = atomic_fetch_add(&job->next, 1);
        if (part >= TABLES) break;
        table_gradient(call, part, (float *)call->buffers + thread * FEW_WORDS * row);
    }
    meet(&job->place, num_threads);
    int64_t table_size = call->num_ids * dim;
    FOR_SHARE(k, table_size) {
        float sum = 0;
        for (int part = 0; part < TABLES; part++) sum += call->tables[part * table_size + k];
        call->grad_embedding[k] = sum;
    }
}

void elmokit_cnn_backward(cnn_call *call, int64_t num_threads) {
    gradient_job job = {.call = call};
    share(cnn_backward_task, &job, (int)num_threads);
}
