/* Sums of a few rows with one panel of a packed matrix, held in vector registers. */

#pragma once

#include "vector.h"

/* Without instructions for a type, the values in 32 bits of K are multiplied one after the other, each
   by all rows: otherwise the processor has too few registers. */
#if VL == 16 && defined(__AVX512BF16__)
#define HAS_BF16 1
#define add_pairs(sum, a, b) \
    (vf)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)_mm512_set1_epi32((int)(a)), (__m512bh)(b))
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define HAS_BF16 1
#define add_pairs(sum, a, b) \
    (vf)vbfdotq_f32((float32x4_t)(sum), (bfloat16x8_t)vdupq_n_u32(a), (bfloat16x8_t)(b))
#else
#define HAS_BF16 0
#define add_pairs(sum, a, b) (sum)
#endif

#if VL == 16 && defined(__AVX512VNNI__)
#define HAS_INT8 1
#define add_bytes(sum, a, b) \
    (vi)_mm512_dpbusd_epi32((__m512i)(sum), _mm512_set1_epi32((int)(a)), (__m512i)(b))
#elif SIGNED_ROWS
#define HAS_INT8 1
#define add_bytes(sum, a, b) \
    (vi)vdotq_s32((int32x4_t)(sum), (int8x16_t)vdupq_n_u32(a), (int8x16_t)(b))
#else
#define HAS_INT8 0
#define add_bytes(sum, a, b) (sum)
#endif

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

INLINE vf add_product(int type, int part, vf sum, uint32_t a, vi b) {
    if (type == FP32) return sum + float_of(a) * (vf)b;
    if (HAS_BF16) return add_pairs(sum, a, b);
    if (part == 0) return sum + float_of(a << 16) * (vf)((vu)b << 16);
    return sum + float_of(a & 0xffff0000u) * (vf)(b & (int32_t)0xffff0000);
}

INLINE vi add_integers(int part, vi sum, uint32_t a, vi b) {
    if (HAS_INT8) return add_bytes(sum, a, b);
    return sum + (int32_t)((a >> (8 * part)) & 255) * ((vi)((vu)b << (24 - 8 * part)) >> 24);
}

/* What to prefetch: `step` values per group of K. */
typedef struct {
    const uint32_t *from;
    int64_t step;
} upcoming;

INLINE void tile_of(int type, int rows, const uint32_t *a, int64_t stride, const uint32_t *panel,
                    int64_t groups, float *sums, int fresh, upcoming ahead) {
    int parts = type == FP32 ? 1 : type == BF16 ? 2 - HAS_BF16 : 4 - 3 * HAS_INT8;
    vf sum[MAX_TILE][NV];
    vi whole[MAX_TILE][NV]; /* sums of int8: gcc stores in memory what is cast in every step */
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < NV; v++) sum[r][v] = (vf){0}, whole[r][v] = (vi){0};
    for (int64_t k = 0; k < groups; k++) {
        vi b[NV];
        for (int v = 0; v < NV; v++) b[v] = *(const vi_any *)(panel + k * PANEL + v * VL);
        __builtin_prefetch(ahead.from, 0, 2);
        __builtin_prefetch(ahead.from + ahead.step / 2, 0, 2);
        ahead.from += ahead.step;
        for (int part = 0; part < parts; part++)
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < NV; v++)
                    if (type == INT8)
                        whole[r][v] = add_integers(part, whole[r][v], a[r * stride + k], b[v]);
                    else sum[r][v] = add_product(type, part, sum[r][v], a[r * stride + k], b[v]);
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < NV; v++) {
            float *place = sums + r * PANEL + v * VL;
            vf before = fresh ? (vf){0} : load(place);
            store(place, type == INT8 ? (vf)((vi)before + whole[r][v]) : before + sum[r][v]);
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
