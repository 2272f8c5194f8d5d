/* Vectors of VL floats, and the functions of a gate, for whatever processor this is compiled for.

   GCC's vector extensions (clang has them too) become AVX-512, AVX2, NEON or plain code. Compiled
   without -ffast-math: sums are added in the order that is written, and the rounding mode of the
   process is left alone. */

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#define VL 16
#elif defined(__AVX__)
#define VL 8
#else
#define VL 4
#endif
#define NV 4              /* vectors side by side in a panel */
#define PANEL (NV * VL)   /* columns of a panel */

typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));
typedef float vf_any __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef int32_t vi_any __attribute__((vector_size(4 * VL), aligned(4), may_alias));

static inline vf load(const float *from) { return *(const vf_any *)from; }
static inline void store(float *to, vf value) { *(vf_any *)to = value; }
static inline vf all(float value) { return value - (vf){0}; }
static inline vf choose(vi mask, vf yes, vf no) { return (vf)(((vi)yes & mask) | ((vi)no & ~mask)); }
static inline vf larger(vf a, vf b) { return choose(a > b, a, b); }
static inline vf clip(vf x, float bound) {
    x = choose(x > all(bound), all(bound), x);
    return choose(x < all(-bound), all(-bound), x);
}

/* e^x for x in [-87, 88] (clamped): 2^n e^r with |r| <= ln(2) / 2 and a polynomial for e^r. */
static inline vf vexp(vf x) {
    x = choose(x > all(88.0f), all(88.0f), x);
    x = choose(x < all(-87.0f), all(-87.0f), x);
    vf shifted = x * 1.44269504088896341f + 12582912.0f; /* the low bits hold the rounded n */
    vf n = shifted - 12582912.0f;
    vf r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vf p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    vi power = ((vi)shifted - 0x4B400000 + 127) << 23;
    return p * (vf)power;
}

static inline vf vsigmoid(vf x) { return 1.0f / (1.0f + vexp(-x)); }

static inline vf vtanh(vf x) {
    vf size = (vf)((vi)x & 0x7fffffff);
    vf z = x * x;
    vf p = all(-5.70498872745e-3f);
    p = p * z + 2.06390887954e-2f;
    p = p * z + -5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z + -3.33332819422e-1f;
    vf small = p * z * x + x;
    vf large = 1.0f - 2.0f / (vexp(size + size) + 1.0f);
    large = (vf)((vi)large | ((vi)x & (int32_t)0x80000000));
    return choose(size < all(0.625f), small, large);
}

/* Nearest bfloat16, ties to even, in the low half. */
static inline uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
