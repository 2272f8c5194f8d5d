/* Products by Intel's matrix unit (AMX), where available: 16 rows with 16 columns of 16 groups at a
   time, in bf16 and int8. Panels are packed as for vectors: a group of K of 16 columns is a row of
   a tile. */

#pragma once

#include "openmp.h"
#include "vector_tile.h"

#if VL == 16 && defined(__linux__) && defined(__x86_64__) && defined(__AMX_TILE__) && \
    defined(__AMX_BF16__) && defined(__AMX_INT8__)
#define HAS_TILES 1
#include <sys/syscall.h>
#include <unistd.h>
#else
#define HAS_TILES 0
#endif

#if HAS_TILES

static int tiles_allowed; /* the system saves the unit's registers */

static void ask_for_tiles(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl */
    tiles_allowed = !syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
}
static void prepare_tiles(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_for_tiles);
}

/* Tiles 0 to 3: sums; 4 and 5: rows and a part of the panel; 6 and 7: the same, of 8 groups. */
static void begin_tiles(void) {
    static const struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes __attribute__((aligned(64))) = {
        .palette = 1,
        .row_bytes = {64, 64, 64, 64, 64, 64, 32, 64},
        .rows = {16, 16, 16, 16, 16, 16, 16, 8},
    };
    if (tiles_allowed) _tile_loadconfig(&shapes);
}
static void end_tiles(void) {
    if (tiles_allowed) _tile_release();
}

/* A tile of rows with four tiles of a panel. In some compilers the intrinsics are statements. */
#define PRODUCTS(ROWS, COLUMNS, ADD)                                       \
    do {                                                                   \
        _tile_loadd(ROWS, a + k, 4 * stride);                              \
        _tile_loadd(COLUMNS, panel + k * PANEL, 4 * PANEL);                \
        ADD(0, ROWS, COLUMNS);                                             \
        _tile_loadd(COLUMNS, panel + k * PANEL + VL, 4 * PANEL);           \
        ADD(1, ROWS, COLUMNS);                                             \
        _tile_loadd(COLUMNS, panel + k * PANEL + 2 * VL, 4 * PANEL);       \
        ADD(2, ROWS, COLUMNS);                                             \
        _tile_loadd(COLUMNS, panel + k * PANEL + 3 * VL, 4 * PANEL);       \
        ADD(3, ROWS, COLUMNS);                                             \
    } while (0)
#define FOUR_SUMS(DO)                  \
    do {                               \
        DO(0, sums, 4 * PANEL);        \
        DO(1, sums + VL, 4 * PANEL);   \
        DO(2, sums + 2 * VL, 4 * PANEL); \
        DO(3, sums + 3 * VL, 4 * PANEL); \
    } while (0)

INLINE void tiles_of(int type, const uint32_t *a, int64_t stride, const uint32_t *panel,
                     int64_t groups, float *sums, int fresh, upcoming ahead) {
    if (fresh) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        FOUR_SUMS(_tile_loadd);
    }
    int64_t k = 0;
    for (; k + TILE_GROUPS <= groups; k += TILE_GROUPS) {
        for (int g = 0; ahead.step && g < TILE_GROUPS; g++, ahead.from += ahead.step)
            for (int64_t line = 0; line < ahead.step; line += 16)
                __builtin_prefetch(ahead.from + line, 0, 2);
        if (type == BF16) PRODUCTS(4, 5, _tile_dpbf16ps);
        else PRODUCTS(4, 5, _tile_dpbusd);
    }
    if (k < groups) { /* 8 more */
        if (type == BF16) PRODUCTS(6, 7, _tile_dpbf16ps);
        else PRODUCTS(6, 7, _tile_dpbusd);
    }
    FOUR_SUMS(_tile_stored);
}
#undef PRODUCTS
#undef FOUR_SUMS

/* sums (TILE_ROWS, PANEL) += or = a x panel, for up to TILE_ROWS rows of `a`; other rows of the
   sums are undefined. `groups` is a multiple of 8, at most K_BLOCK. */
static __attribute__((noinline)) void tiles(int type, int rows, const uint32_t *a, int64_t stride,
                                            const uint32_t *panel, int64_t groups, float *sums,
                                            int fresh, upcoming ahead) {
    uint32_t whole[TILE_ROWS * K_BLOCK];
    if (rows == 1) {
        stride = 0; /* the same row 16 times */
    } else if (rows < TILE_ROWS) { /* nothing is read beyond the last row */
        for (int r = 0; r < TILE_ROWS; r++)
            memcpy(whole + r * groups, a + smaller_of(r, rows - 1) * stride, 4 * groups);
        a = whole, stride = groups;
    }
    if (type == BF16) tiles_of(BF16, a, stride, panel, groups, sums, fresh, ahead);
    else tiles_of(INT8, a, stride, panel, groups, sums, fresh, ahead);
}

#else
enum { tiles_allowed = 0 };
static void prepare_tiles(void) {}
static void begin_tiles(void) {}
static void end_tiles(void) {}
#endif

/* Rows that are summed together. */
static inline int rows_together(int type) {
    return tiles_allowed && type != FP32 ? TILE_ROWS : MAX_TILE;
}

/* Rows to read for whole tiles, if memory allows; the sums of the additional ones are undefined. */
static inline int readable_rows(int type, int rows) {
    return tiles_allowed && type == BF16 ? TILE_ROWS : rows;
}

/* sums (rows_together, PANEL) += or = a (rows, groups; rows `stride` groups apart) x panel. Groups
   beyond a multiple of 8 use vectors: the order of a sum depends on `groups` only. */
INLINE void sum_rows(int type, int rows, const uint32_t *a, int64_t stride, const uint32_t *panel,
                     int64_t groups, float *sums, int fresh, upcoming ahead) {
#if HAS_TILES
    if (tiles_allowed && (type == BF16 || (type == INT8 && rows > FEW_ROWS))) {
        int64_t whole = groups & ~(int64_t)7;
        for (int64_t k = 0; k < whole; k += K_BLOCK)
            tiles(type, rows, a + k, stride, panel + k * PANEL, smaller_of(whole - k, K_BLOCK),
                  sums, fresh && !k, ahead);
        for (int r = 0; whole < groups && r < rows; r += MAX_TILE)
            tile(type, (int)smaller_of(rows - r, MAX_TILE), a + r * stride + whole, stride,
                 panel + whole * PANEL, groups - whole, sums + r * PANEL, fresh && !whole,
                 (upcoming){panel, 0});
        return;
    }
#endif
    tile(type, rows, a, stride, panel, groups, sums, fresh, ahead);
}

/* A task whose threads may use the matrix unit. */
typedef struct {
    task job;
    void *argument;
} product_work;

static void product_task(void *argument, int thread, int num_threads) {
    product_work *one = argument;
    begin_tiles();
    one->job(one->argument, thread, num_threads);
    end_tiles();
}

static void share_products(task job, void *argument, int num_threads) {
    product_work one = {job, argument};
    prepare_tiles();
    share(product_task, &one, num_threads);
}
