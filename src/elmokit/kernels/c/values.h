/* fp32 or bf16 values in memory, computed on as fp32; packing of matrices. */

#pragma once

#include "openmp.h"
#include "vector.h"

typedef uint16_t vhalf __attribute__((vector_size(2 * VL), aligned(2), may_alias));

INLINE vf load_as(int type, const void *from, int64_t at) {
    if (type == FP32) return load((const float *)from + at);
    vhalf half = *(const vhalf *)((const uint16_t *)from + at);
    return (vf)(__builtin_convertvector(half, vu) << 16);
}

INLINE void store_as(int type, void *to, int64_t at, vf value) {
    if (type == FP32) store((float *)to + at, value);
    else store_bf16((uint16_t *)to + at, value);
}

static inline float value_as(int type, const void *from, int64_t at) {
    if (type == FP32) return ((const float *)from)[at];
    uint32_t bits = (uint32_t)((const uint16_t *)from)[at] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline void set_as(int type, void *to, int64_t at, float value) {
    if (type == FP32) ((float *)to)[at] = value;
    else ((uint16_t *)to)[at] = to_bf16(value);
}

static inline const void *place_of(int type, const void *values, int64_t at) {
    return (const char *)values + at * (type == FP32 ? 4 : 2);
}

/* ---- packing: (columns of the result, inner) or its transpose ---- */

typedef struct {
    const float *source;    /* (columns, inner), or transposed (inner, columns) */
    int64_t columns, inner, is_transposed;
    int64_t blocks;         /* of columns that alternate in a panel, VL at a time: 4 for gates */
    uint32_t *to;           /* (panels, groups, PANEL) */
    int64_t type;
} pack_call;

static inline float source_value(const pack_call *call, int64_t column, int64_t k) {
    if (column < 0 || k >= call->inner) return 0;
    return call->is_transposed ? call->source[k * call->columns + column]
                               : call->source[column * call->inner + k];
}

static void pack_task(void *argument, int thread, int num_threads) {
    const pack_call *call = argument;
    int per_group = call->type == FP32 ? 1 : 2;
    int64_t groups = (call->inner + per_group - 1) / per_group;
    int64_t panels = (call->columns + PANEL - 1) / PANEL, each = call->columns / call->blocks;
    FOR_SHARE(panel, panels) {
        int64_t column[PANEL];
        for (int c = 0; c < PANEL; c++) {
            column[c] = call->blocks == 1 ? panel * PANEL + c : c / VL * each + panel * VL + c % VL;
            if (column[c] >= call->columns) column[c] = -1;
        }
        uint32_t *to = call->to + panel * groups * PANEL;
        for (int64_t block = 0; block < groups; block += 16) /* a line of each column at a time */
            for (int c = 0; c < PANEL; c++)
                for (int64_t k = block; k < smaller_of(block + 16, groups); k++)
                    if (per_group == 1) {
                        float value = source_value(call, column[c], k);
                        memcpy(to + k * PANEL + c, &value, 4);
                    } else {
                        uint32_t low = to_bf16(source_value(call, column[c], 2 * k));
                        uint32_t high = to_bf16(source_value(call, column[c], 2 * k + 1));
                        to[k * PANEL + c] = low | high << 16;
                    }
    }
}

void elmokit_pack(pack_call *call, int64_t num_threads) {
    share(pack_task, call, (int)num_threads);
}
