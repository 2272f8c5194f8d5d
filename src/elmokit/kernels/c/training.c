/* Training, apart from PyTorch's large matrix products: recurrence, convolutions, rows. One
   translation unit. No result depends on the number of threads. */

#include "cnn_train.h"
#include "lstm_train.h"
#include "rows_train.h"

int64_t elmokit_vector_length(void) { return VL; }

int64_t elmokit_has_bf16(void) {
#if VL == 16 && defined(__AVX512BF16__)
    return 1;
#else
    return 0;
#endif
}
