"""C sources of small kernel libraries."""


def write_library(directory, fields, name="own"):
    """Write a library whose one call has ``fields``."""
    code = f"""
#include <stdint.h>
#include "constants.h"
typedef struct {{ float clip; int64_t count; }} part;
typedef struct {{ double unseen; }} inside;
typedef struct {{ {fields} }} own_call;
int64_t elmokit_vector_length(void) {{ return 4; }}
void elmokit_own(own_call *call, int64_t num_threads) {{ (void)call, (void)num_threads; }}
"""
    (directory / f"{name}.c").write_text(code)
