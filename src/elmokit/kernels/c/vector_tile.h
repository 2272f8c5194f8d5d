/* Sums of a few rows with one panel of a packed matrix, held in vector registers. */

#pragma once

#include "vector.h"

INLINE vf add_product(int type, vf sum, const uint32_t *a, vi b) {
    if (type == FP32) {
        float value;
        memcpy(&value, a, 4);
        return sum + value * (vf)b;
    }
    if (type == BF16) {
#if VL == 16 && defined(__AVX512BF16__)
        return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int)*a),
                                    (__m512bh)b);
#else
        uint32_t low_bits = *a << 16, high_bits = *a & 0xffff0000u;
        float low, high;
        memcpy(&low, &low_bits, 4);
        memcpy(&high, &high_bits, 4);
        sum = sum + low * (vf)((vu)b << 16);
        return sum + high * (vf)(b & (int32_t)0xffff0000);
#endif
    }
#if VL == 16 && defined(__AVX512VNNI__)
    return (vf)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32((int)*a), (__m512i)b);
#else
    vi total = (vi)sum;
    for (int byte = 0; byte < 4; byte++) {
        int32_t unsigned_value = (int32_t)((*a >> (8 * byte)) & 255);
        total += unsigned_value * ((vi)((vu)b << (24 - 8 * byte)) >> 24);
    }
    return (vf)total;
#endif
}

/* What to prefetch: `step` values per group of K. */
typedef struct {
    const uint32_t *from;
    int64_t step;
} upcoming;

INLINE void tile_of(int type, int rows, const uint32_t *a, int64_t stride, const uint32_t *panel,
                    int64_t groups, float *sums, int fresh, upcoming ahead) {
    vf sum[MAX_TILE][NV];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < NV; v++) sum[r][v] = (vf){0};
    for (int64_t k = 0; k < groups; k++) {
        vi b[NV];
        for (int v = 0; v < NV; v++) b[v] = *(const vi_any *)(panel + k * PANEL + v * VL);
        __builtin_prefetch(ahead.from, 0, 2);
        __builtin_prefetch(ahead.from + ahead.step / 2, 0, 2);
        ahead.from += ahead.step;
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < NV; v++)
                sum[r][v] = add_product(type, sum[r][v], a + r * stride + k, b[v]);
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < NV; v++) {
            float *place = sums + r * PANEL + v * VL;
            vf before = fresh ? (vf){0} : load(place);
            store(place, type == INT8 ? (vf)((vi)before + (vi)sum[r][v]) : before + sum[r][v]);
        }
}

/* sums (rows, PANEL) += or = a (rows, groups; rows `stride` groups apart) x panel. */
static __attribute__((noinline)) void tile(int type, int rows, const uint32_t *a, int64_t stride,
                                           const uint32_t *panel, int64_t groups, float *sums,
                                           int fresh, upcoming ahead) {
#define CASE(T, R)                                                        \
    case T * 8 + R:                                                       \
        tile_of(T, R, a, stride, panel, groups, sums, fresh, ahead);      \
        break;
#define CASES(T) CASE(T, 1) CASE(T, 2) CASE(T, 3) CASE(T, 4) CASE(T, 5) CASE(T, 6)
    switch (type * 8 + rows) { CASES(FP32) CASES(BF16) CASES(INT8) }
#undef CASE
#undef CASES
}
