/* Vectors of VL floats, and the functions of a gate, for whatever processor this is compiled for.

   GCC's and clang's vector extensions become AVX-512, AVX2, NEON or plain code. Without
   -ffast-math: sums are added in the written order, and the process keeps its rounding mode. */

#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "constants.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define VL 16
#elif defined(__AVX__)
#define VL 8
#else
#define VL 4
#endif
#if defined(__ARM_FEATURE_DOTPROD)
#define SIGNED_ROWS 1 /* int8: the processor multiplies signed bytes only */
#else
#define SIGNED_ROWS 0 /* it multiplies unsigned by signed bytes: those of rows are shifted by 128 */
#endif
#define PANEL (NV * VL) /* columns of a panel */
#define INLINE static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));
typedef uint32_t vu __attribute__((vector_size(4 * VL)));
typedef float vf_any __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef int32_t vi_any __attribute__((vector_size(4 * VL), aligned(4), may_alias));

static inline vf load(const float *from) { return *(const vf_any *)from; }
static inline void store(float *to, vf value) { *(vf_any *)to = value; }
static inline int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }
static inline vf all(float value) { return value - (vf){0}; }
/* NaN is kept if it is the second operand. */
#if VL == 16
static inline vf larger(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vf smaller(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vi larger_int(vi a, vi b) { return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
static inline vf if_less(vf a, vf b, vf yes, vf no) {
    __mmask16 mask = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
    return (vf)_mm512_mask_blend_ps(mask, (__m512)no, (__m512)yes);
}
#else
static inline vf if_less(vf a, vf b, vf yes, vf no) {
    vi mask = a < b;
    return (vf)(((vi)yes & mask) | ((vi)no & ~mask));
}
static inline vf larger(vf a, vf b) { return if_less(b, a, a, b); }
static inline vi larger_int(vi a, vi b) { return (a & (a > b)) | (b & ~(a > b)); }
static inline vf smaller(vf a, vf b) { return if_less(a, b, a, b); }
#endif
/* a b + c rounded once where the processor can: says which product of a b + d e compilers fuse. */
static inline vf fused(vf a, vf b, vf c) {
#if VL == 16
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif VL == 8 && defined(__FMA__)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON)
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}
static inline vf size_of(vf x) { return (vf)((vi)x & 0x7fffffff); }
static inline vf clip(vf x, float bound) { return larger(all(-bound), smaller(all(bound), x)); }

static inline vf within(vf x, float low, float high) {
    return larger(all(low), smaller(all(high), x));
}

/* 2^n and e^r - 1 (accurate near 0) with x = n ln(2) + r, |r| <= ln(2) / 2, for x in [-87, 88]. The
   error of the polynomial is below 8e-9. */
typedef struct {
    vf scale, minus_one;
} exponential;

static inline exponential split_exp(vf x) {
    vf shifted = x * 1.44269504088896341f + 12582912.0f; /* the low bits hold the rounded n */
    vf n = shifted - 12582912.0f;
    vf r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vf p = all(1.3933867098e-3f);
    p = p * r + 8.3633355999e-3f;
    p = p * r + 4.1666463056e-2f;
    p = p * r + 1.6666576039e-1f;
    p = p * r + 5.0000000136e-1f;
    exponential result = {(vf)(((vu)shifted << 23) + 0x3f800000), p * (r * r) + r};
    return result;
}
static inline vf exp_of(vf x) {
    exponential e = split_exp(x);
    return e.scale * e.minus_one + e.scale;
}
static inline vf expm1_of(vf x) {
    exponential e = split_exp(x);
    return e.scale * e.minus_one + (e.scale - 1.0f);
}
static inline vf vexp(vf x) { return exp_of(within(x, -87.0f, 88.0f)); }

static inline vf vsigmoid(vf x) { return 1.0f / (1.0f + vexp(-x)); }

static inline vf vtanh(vf x) {
    vf e = expm1_of(clip(x + x, 40.0f));
    return e / (e + 2.0f);
}

/* Nearest bfloat16, ties to even. */
static inline uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
typedef uint16_t vh __attribute__((vector_size(2 * VL)));
static inline void store_bf16(uint16_t *to, vf value) {
    vu bits = (vu)value;
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    vh half = __builtin_convertvector(bits, vh);
    memcpy(to, &half, sizeof half);
}
