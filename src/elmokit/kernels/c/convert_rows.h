/* Conversion of fp32 rows to the types of products. */

#pragma once

#include "vector.h"

/* Converts `count` values to `groups` groups of `type`, padded with zeros. Returns the scale of an
   int8 row, whose values are stored + 128: NaN if one of them is not finite. */
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
    uint8_t *byte = (uint8_t *)to;
    vf most = {0}, undefined = {0};
    float largest = 1e-30f, bad = 0; /* x - x is 0, or undefined like x */
    int64_t k = 0;
    for (; k + VL <= count; k += VL) {
        vf x = load(from + k);
        most = larger(size_of(x), most);
        undefined += x - x;
    }
    for (int v = 0; v < VL; v++) largest = most[v] > largest ? most[v] : largest, bad += undefined[v];
    for (; k < count; k++) {
        largest = fabsf(from[k]) > largest ? fabsf(from[k]) : largest;
        bad += from[k] - from[k];
    }
    float inverse = 127.0f / largest;
    typedef uint8_t vb __attribute__((vector_size(VL)));
    for (k = 0; k + VL <= count; k += VL) { /* positive: truncation rounds to nearest */
        vf shifted = load(from + k) * inverse + 128.5f; /* NaN, as the first operand, is dropped */
        shifted = larger(smaller(shifted, all(255.0f)), (vf){0});
        vb bytes = __builtin_convertvector(__builtin_convertvector(shifted, vi), vb);
        memcpy(byte + k, &bytes, sizeof bytes);
    }
    for (; k < count; k++) {
        float shifted = from[k] * inverse + 128.5f;
        byte[k] = shifted < 255.0f ? (uint8_t)shifted : 255;
    }
    memset(byte + count, 128, 4 * groups - count);
    return largest / 127.0f + bad;
}
