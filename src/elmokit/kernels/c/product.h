/* Products of rows with a packed matrix, in three precisions.

   A matrix (N, K) is packed in panels of PANEL columns of the result. A panel has four vectors for
   each group of K: 1 fp32, 2 bf16 or 4 int8 values, so always 32 bits. The 32-bit groups of a row
   are broadcast. The order of additions over K, and so the bits of a row, do not depend on other
   rows. */

#pragma once

#include "matrix_unit.h"

typedef struct {
    int64_t type, num_panels, num_groups; /* num_groups: of K, padded */
    const uint32_t *values;               /* (panels, groups, NV, VL) */
    const float *scale;                   /* int8: of each column (panels * PANEL) */
    const int32_t *offset;                /* int8: 128 x sum of each column's values */
} matrix;

/* Called with the sums of some rows and one panel. */
typedef void (*finish)(void *argument, int64_t row, int rows, int64_t panel, float *sums);
#define EACH_ROW for (int r = 0; r < rows; r++, row++, sums += PANEL)

/* int8: sums are integers; row_scale is that of the row's values. */
static inline void to_float(const matrix *m, int64_t panel, float row_scale, float *sums) {
    for (int v = 0; v < NV; v++) {
        int64_t column = panel * PANEL + v * VL;
        vi whole = *(const vi_any *)(sums + v * VL);
        if (!SIGNED_ROWS) whole -= *(const vi_any *)(m->offset + column);
        store(sums + v * VL, __builtin_convertvector(whole, vf) *
                                 (load(m->scale + column) * row_scale));
    }
}

/* One panel of a product: `rows` rows of `a`, each passed to `done`. While a block of K is
   computed, the next one is prefetched at an even pace. `next` is the panel after this one. Inlined
   with `done`: with the few groups of small models, calls for rows cost a tenth of the time. */
INLINE void panel_product(const matrix *m, int64_t panel, int64_t next, const uint32_t *a,
                          int64_t stride, const float *row_scales, int64_t rows, finish done,
                          void *argument) {
    float sums[ROWS_BLOCK * PANEL] __attribute__((aligned(64)));
    const uint32_t *values = m->values + panel * m->num_groups * PANEL;
    int64_t together = rows_together((int)m->type);
    for (int64_t block = 0; block < rows; block += ROWS_BLOCK) {
        int64_t end = smaller_of(block + ROWS_BLOCK, rows);
        int64_t tiles = (end - block + together - 1) / together;
        for (int64_t k = 0; k < m->num_groups; k += K_BLOCK) {
            int64_t groups = smaller_of(m->num_groups - k, K_BLOCK);
            int last = k + groups == m->num_groups;
            upcoming ahead = {values + (k + groups) * PANEL, (PANEL + tiles - 1) / tiles};
            if (tiles == 1) ahead.step = 0;
            if (last) ahead.from = m->values + (end < rows ? panel : next) * m->num_groups * PANEL;
            for (int64_t row = block; row < end; row += together) {
                int height = (int)smaller_of(end - row, together);
                float *place = sums + (row - block) * PANEL;
                sum_rows((int)m->type, height, a + row * stride + k, stride, values + k * PANEL,
                         groups, place, k == 0, ahead);
                ahead.from += groups * ahead.step;
                if (!last) continue;
                for (int r = 0; r < height && m->type == INT8; r++)
                    to_float(m, panel, row_scales[row + r], place + r * PANEL);
                done(argument, row, height, panel, place);
            }
        }
    }
}
