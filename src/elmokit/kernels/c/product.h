/* Products of rows with a packed matrix, in three precisions.

   A matrix (N, K) is packed in panels of PANEL columns of the result. Inside a panel the four
   vectors of a group of K follow each other: a group is 1 fp32, 2 bf16 or 4 int8 values, so that it
   always fills 32 bits, and a row is read as 32-bit groups that are broadcast. Every value of the
   result is the same chain of additions over K, whatever the number of rows: a row gets the same bits in
   any company. */

enum { FP32 = 0, BF16 = 1, INT8 = 2 };
#define MAX_TILE 6        /* rows whose sums are held in registers */
#define K_BLOCK 256       /* groups of K that are summed by themselves: less rounding, and they stay
                             in the cache until the next tile */
#define ROWS_BLOCK 96     /* rows whose sums wait between blocks of K; a multiple of TILE_ROWS */

static inline int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct {
    int64_t type, num_panels, num_groups; /* num_groups: of K, padded */
    const uint32_t *values;               /* (panels, groups, NV, VL) */
    const float *scale;                   /* int8: of each column (panels * PANEL) */
    const int32_t *offset;                /* int8: 128 x sum of each column's values */
} matrix;

static inline __attribute__((always_inline)) vf add_product(int type, vf sum, const uint32_t *a,
                                                            vi b) {
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
        sum = sum + low * (vf)(b << 16);
        return sum + high * (vf)(b & (int32_t)0xffff0000);
#endif
    }
#if VL == 16 && defined(__AVX512VNNI__)
    return (vf)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32((int)*a), (__m512i)b);
#else
    vi total = (vi)sum;
    for (int byte = 0; byte < 4; byte++) {
        int32_t unsigned_value = (int32_t)((*a >> (8 * byte)) & 255);
        total += unsigned_value * ((b << (24 - 8 * byte)) >> 24);
    }
    return (vf)total;
#endif
}

/* What to fetch into the cache meanwhile: `step` values for each group of K. */
typedef struct {
    const uint32_t *from;
    int64_t step;
} upcoming;

static inline __attribute__((always_inline)) void tile_of(int type, int rows, const uint32_t *a,
                                                          int64_t stride, const uint32_t *panel,
                                                          int64_t groups, float *sums, int fresh,
                                                          upcoming ahead) {
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
    switch (type * 8 + rows) { CASES(0) CASES(1) CASES(2) }
#undef CASE
#undef CASES
}

#include "tiles.h"

/* What is done with one row's sums of one panel. */
typedef void (*finish)(void *argument, int64_t row, int64_t panel, float *sums);

/* int8: sums are integers; row_scale is that of the row's values. */
static inline void to_float(const matrix *m, int64_t panel, float row_scale, float *sums) {
    for (int v = 0; v < NV; v++) {
        int64_t column = panel * PANEL + v * VL;
        vi whole = *(const vi_any *)(sums + v * VL) - *(const vi_any *)(m->offset + column);
        store(sums + v * VL, __builtin_convertvector(whole, vf) *
                                 (load(m->scale + column) * row_scale));
    }
}

/* One panel of a product: `rows` rows of `a`, each handed to `done`. While a block of K is computed,
   the next one is fetched, evenly: all at once the memory would keep the computing waiting. `next`
   is the panel after this one. */
static void panel_product(const matrix *m, int64_t panel, int64_t next, const uint32_t *a,
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
                for (int r = 0; r < height; r++) {
                    float *one = place + r * PANEL;
                    if (m->type == INT8) to_float(m, panel, row_scales[row + r], one);
                    done(argument, row + r, panel, one);
                }
            }
        }
    }
}

/* Row values as the product reads them: `groups` groups of `type`, zeros beyond `count`. Returns
   the scale of an int8 row, whose values are stored + 128. */
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
        most = larger((vf)((vi)x & 0x7fffffff), most);
        undefined += x - x;
    }
    for (int v = 0; v < VL; v++) largest = most[v] > largest ? most[v] : largest, bad += undefined[v];
    for (; k < count; k++) {
        largest = fabsf(from[k]) > largest ? fabsf(from[k]) : largest;
        bad += from[k] - from[k];
    }
    float inverse = 127.0f / largest;
    typedef uint8_t vb __attribute__((vector_size(VL)));
    for (k = 0; k + VL <= count; k += VL) { /* positive: cutting off rounds to nearest */
        vb bytes = __builtin_convertvector(
            __builtin_convertvector(load(from + k) * inverse + 128.5f, vi), vb);
        memcpy(byte + k, &bytes, sizeof bytes);
    }
    for (; k < count; k++) byte[k] = (uint8_t)(int)(from[k] * inverse + 128.5f);
    memset(byte + count, 128, 4 * groups - count);
    return largest / 127.0f + bad;
}
