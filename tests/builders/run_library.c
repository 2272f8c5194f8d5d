/* Load a compiled training library, run an LSTM with projection forward and backward on fixed
   numbers and two threads, and print what it computed, for comparison between platforms.

       run_library LIBRARY */

#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#include <windows.h>
#undef INT8 /* a type there, a constant here */
#define OPEN(path) (void *)LoadLibraryA(path)
#define FIND(library, name) (void *)GetProcAddress((HMODULE)(library), name)
#else
#include <dlfcn.h>
#define OPEN(path) dlopen(path, RTLD_NOW)
#define FIND(library, name) dlsym(library, name)
#endif

#include "lstm_train.h"

enum { STEPS = 5, ROWS = 7, DIM = 48, CELLS = 80, THREADS = 2 };

static void *library;
static int64_t panel_width;

static void *find(const char *name) {
    void *found = FIND(library, name);
    if (!found) fprintf(stderr, "no %s\n", name), exit(2);
    return found;
}

static float *values(int64_t count, float scale) {
    static uint32_t state = 1;
    float *made = malloc(4 * (size_t)count);
    for (int64_t k = 0; k < count; k++) {
        state = state * 1664525u + 1013904223u;
        made[k] = scale * ((float)(state >> 8) / (1 << 23) - 1);
    }
    return made;
}

static matrix packed(const float *source, int64_t columns, int64_t inner, int transposed, int64_t blocks) {
    int64_t panels = (columns + panel_width - 1) / panel_width;
    pack_call call = {.source = source, .columns = columns, .inner = inner,
                      .is_transposed = transposed, .blocks = blocks, .type = FP32,
                      .to = malloc(4 * (size_t)(panels * inner * panel_width))};
    ((void (*)(pack_call *, int64_t))find("elmokit_pack"))(&call, THREADS);
    return (matrix){.type = FP32, .num_panels = panels, .num_groups = inner, .values = call.to};
}

static void print(const float *found, int64_t count) {
    for (int64_t k = 0; k < count; k++) printf("%.9g\n", found[k]);
}

int main(int count, char **names) {
    library = count == 2 ? OPEN(names[1]) : NULL;
    if (!library) return fprintf(stderr, "cannot load the library\n"), 2;
    panel_width = NV * ((int64_t(*)(void))find("elmokit_vector_length"))();
    float *recurrent = values(4 * CELLS * DIM, 0.2f), *projection = values(DIM * CELLS, 0.2f);
    lstm_cell cell = {.cell_clip = 3, .projection_clip = 3};
    float *hiddens = values((STEPS + 1) * ROWS * DIM, 0.5f);
    float *gates = values(STEPS * ROWS * 4 * CELLS, 1);
    lstm_forward forward = {
        .recurrent = packed(recurrent, 4 * CELLS, DIM, 0, 4),
        .projection = packed(projection, DIM, CELLS, 0, 1),
        .type = FP32, .num_steps = STEPS, .num_rows = ROWS, .dim = DIM, .cell_dim = CELLS,
        .gates = gates, .bias = values(4 * CELLS, 1), .cells = values((STEPS + 1) * ROWS * CELLS, 1),
        .inners = values(STEPS * ROWS * CELLS, 0), .hiddens = hiddens, .typed_hiddens = hiddens,
        .parameters = cell};
    ((void (*)(lstm_forward *, int64_t))find("elmokit_lstm_forward"))(&forward, THREADS);
    float *grad_hidden = values(ROWS * DIM, 1), *grad_cell = values(ROWS * CELLS, 1);
    lstm_backward backward = {
        .projection = packed(projection, CELLS, DIM, 1, 1),
        .recurrent = packed(recurrent, DIM, 4 * CELLS, 1, 1),
        .type = FP32, .num_steps = STEPS, .num_rows = ROWS, .dim = DIM, .cell_dim = CELLS,
        .gates = gates, .cells = forward.cells, .hiddens = hiddens,
        .grad_outputs = values(STEPS * ROWS * DIM, 1), .grad_hidden = grad_hidden,
        .grad_cell = grad_cell, .grad_gates = values(STEPS * ROWS * 4 * CELLS, 0),
        .grad_projected = values(STEPS * ROWS * DIM, 0), .parameters = cell};
    ((void (*)(lstm_backward *, int64_t))find("elmokit_lstm_backward"))(&backward, THREADS);
    print(hiddens, (STEPS + 1) * ROWS * DIM);
    print(grad_hidden, ROWS * DIM);
    print(grad_cell, ROWS * CELLS);
    return 0;
}
