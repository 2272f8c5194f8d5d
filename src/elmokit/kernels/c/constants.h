/* Numbers that the kernels share, some of them with Python: `elmokit.kernels.interface` reads this
   file. */

#pragma once

/* How values are held. */
#define FP32 0
#define BF16 1
#define INT8 2

/* Packed matrices */
#define NV 4              /* vectors side by side in a panel */
#define MAX_TILE 6        /* rows whose sums are held in vector registers */
#define TILE_ROWS 16      /* rows that the matrix unit reads at a time */
#define TILE_GROUPS 16    /* groups of K that it reads at a time */
#define FEW_ROWS 4        /* int8, whose sums are exact either way: vectors read the weights faster */
#define K_BLOCK 256       /* groups of K that are summed by themselves: less rounding, and they stay
                             in the cache until the next tile */
#define ROWS_BLOCK 96     /* rows whose sums wait between blocks of K; a multiple of TILE_ROWS */

/* Character CNN */
#define WORDS_TOGETHER 16 /* words whose characters a thread holds */
#define FILTERS_TOGETHER 64
#define FEW_WORDS 8       /* the gradients of their characters stay in the nearest cache */
#define MAX_POSITIONS 256 /* characters of a word in training: a position is kept in one byte */
#define MAX_WINDOW 2048   /* width x E in training */
#define TABLES 16         /* parts of the words with an embedding gradient of their own */

/* LSTM */
#define GATE_ROWS 256     /* positions whose input products are made at a time: at least one step */
#define MIN_ROWS 24       /* of a thread's own: with fewer the weights are read too often */
