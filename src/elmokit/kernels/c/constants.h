/* Constants of kernels and Python; parsed by `elmokit.kernels.build`. */

#pragma once

/* Types of values */
#define FP32 0
#define BF16 1
#define INT8 2

/* Packed matrices */
#define NV 4              /* vectors side by side in a panel */
#define MAX_TILE 6        /* rows whose sums are held in vector registers */
#define TILE_ROWS 16      /* rows that the matrix unit reads at a time */
#define TILE_GROUPS 16    /* groups of K that it reads at a time */
#define FEW_ROWS 4        /* int8 (exact either way): with so few, vectors are faster */
#define K_BLOCK 96        /* groups of K summed separately: less rounding; with PANEL, they fit in the L1 cache */
#define ROWS_BLOCK 96     /* rows whose sums wait between blocks of K; a multiple of TILE_ROWS */

/* Character CNN */
#define WORDS_TOGETHER 16 /* words whose characters a thread holds */
#define FILTERS_TOGETHER 64
#define FEW_WORDS 8       /* the gradients of their characters fit in the first-level cache */
#define MAX_POSITIONS 256 /* characters of a word in training: positions are single bytes */
#define MAX_WINDOW 2048   /* width x E in training */
#define TABLES 16         /* parts of the words with an embedding gradient of their own */

/* LSTM */
#define GATE_ROWS 256     /* positions whose input products are computed at a time, or one step */
#define MIN_ROWS 24       /* per thread: with fewer, weights are read too often */
