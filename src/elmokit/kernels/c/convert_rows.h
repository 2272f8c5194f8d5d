/* Conversion of fp32 rows to the types of products. */

#pragma once

#include "vector.h"

#define INFINITY_BITS 0x7f800000
#define ROW_ZERO (SIGNED_ROWS ? 0 : 128)

/* Converts `count` values to `groups` groups of `type`, padded with zeros. Returns the scale of an
   int8 row, whose values are stored + ROW_ZERO: NaN if one of them is not finite. */
static float convert_row(int type, const float *from, int64_t count, int64_t groups, uint32_t *to) {
    if (type == FP32) {
        if ((const void *)from != (const void *)to) memcpy(to, from, 4 * count);
        memset(to + count, 0, 4 * (groups - count));
        return 1.0f;
    }
    if (type == BF16) {
        uint16_t *half = (uint16_t *)to;
        int64_t k = 0;
        for (; k + VL <= count; k += VL) store_bf16(half + k, load(from + k));
        for (; k < count; k++) half[k] = to_bf16(from[k]);
        memset(half + count, 0, 2 * (2 * groups - count));
        return 1.0f;
    }
    /* Sizes are ordered like their bits, and those of NaN and infinity are the largest. */
    vi most = {0};
    int32_t largest_bits = 0, bits;
    int64_t k = 0;
    for (; k + VL <= count; k += VL) most = larger_int((vi)load(from + k) & 0x7fffffff, most);
    for (int v = 0; v < VL; v++) largest_bits = most[v] > largest_bits ? most[v] : largest_bits;
    for (; k < count; k++) {
        memcpy(&bits, from + k, 4);
        largest_bits = (bits & 0x7fffffff) > largest_bits ? bits & 0x7fffffff : largest_bits;
    }
    uint8_t *byte = (uint8_t *)to;
    if (largest_bits >= INFINITY_BITS) {
        memset(byte, ROW_ZERO, 4 * groups);
        return NAN;
    }
    float largest;
    memcpy(&largest, &largest_bits, 4);
    largest = largest > 1e-30f ? largest : 1e-30f;
    float inverse = 127.0f / largest;
    typedef uint8_t vb __attribute__((vector_size(VL)));
    for (k = 0; k + VL <= count; k += VL) { /* 1 to 255: truncation rounds to nearest */
        vi whole = __builtin_convertvector(load(from + k) * inverse + 128.5f, vi);
        vb bytes = __builtin_convertvector(whole - (128 - ROW_ZERO), vb);
        memcpy(byte + k, &bytes, sizeof bytes);
    }
    for (; k < count; k++) byte[k] = (uint8_t)((int)(from[k] * inverse + 128.5f) - (128 - ROW_ZERO));
    memset(byte + count, ROW_ZERO, 4 * groups - count);
    return largest / 127.0f;
}
