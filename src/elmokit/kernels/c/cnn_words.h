/* A thread's part of a character CNN: takes words, gathers their characters, and convolves them with
   a panel of filters at a time. To be included where `cnn_call` and `convolve_word` are defined. */

#pragma once

#include "cnn_windows.h"

typedef struct {
    cnn_call *call;
    atomic_llong next;
} cnn_job;

static void cnn_task(void *argument, int thread, int num_threads) {
    cnn_job *job = argument;
    cnn_call *call = job->call;
    (void)num_threads;
    int64_t stride = character_groups(call->type, call->embedding_dim);
    int64_t row = call->max_characters * stride;
    uint32_t *buffer = call->buffers + thread * WORDS_TOGETHER * row;
    for (int64_t start, words; (words = take_words(&job->next, call->num_words, &start));) {
        for (int64_t c = 0; c < words * call->max_characters; c++)
            memcpy(buffer + c * stride,
                   call->typed_embedding +
                       call->char_ids[start * call->max_characters + c] * stride,
                   4 * stride);
        for (int64_t k = 0; k < call->num_convolutions; k++)
            for (int64_t panel = 0; panel < call->convolutions[k].m.num_panels; panel++)
                for (int64_t w = 0; w < words; w++)
                    convolve_word(call, &call->convolutions[k], panel, buffer + w * row, start + w);
    }
}
