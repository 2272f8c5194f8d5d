/* Character windows of a word: the largest answer of each filter. */

#pragma once

#include "product.h"

/* Updates `best` (NV vectors of a panel's filters) with the largest answer to the first `windows`
   windows of a word, and `winners`, if not null, with the number of that window. An answer that is
   not finite makes a filter's best NaN: x - x is 0 or NaN. */
INLINE void best_windows(const matrix *m, int64_t panel, const uint32_t *characters, int64_t stride,
                         int64_t windows, vf *best, vf *winners) {
    int type = (int)m->type, together = rows_together(type);
    const uint32_t *values = m->values + panel * m->num_groups * PANEL;
    float sums[TILE_ROWS * PANEL] __attribute__((aligned(64)));
    vf undefined[NV] = {{0}};
    for (int64_t at = 0; at < windows; at += together) {
        int height = (int)smaller_of(together, windows - at);
        sum_rows(type, readable_rows(type, height), characters + at * stride, stride, values,
                 m->num_groups, sums, 1, (upcoming){values, 0});
        for (int r = 0; r < height; r++)
            for (int v = 0; v < NV; v++) {
                vf value = load(sums + r * PANEL + v * VL);
                if (winners)
                    winners[v] = if_less(best[v], value, all((float)(at + r)), winners[v]);
                best[v] = larger(value, best[v]);
                undefined[v] += value - value;
            }
    }
    for (int v = 0; v < NV; v++) best[v] += undefined[v];
}

/* The next words, from `*start`, that no thread has taken; 0 when all are. */
static inline int64_t take_words(atomic_llong *next, int64_t num_words, int64_t *start) {
    *start = atomic_fetch_add(next, WORDS_TOGETHER);
    return *start < num_words ? smaller_of(WORDS_TOGETHER, num_words - *start) : 0;
}

/* Groups of 32 bits in a character's embedding. */
static inline int64_t character_groups(int64_t type, int64_t embedding_dim) {
    return type == FP32 ? embedding_dim : embedding_dim / 2;
}
