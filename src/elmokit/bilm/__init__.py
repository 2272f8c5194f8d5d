"""The network: ids → tensors. Pure modules that read no files and keep no state between calls.

Shapes, used in every docstring:

    B sentences  W words  T = W + 2 with <S> and </S>  C characters per token (50)
    U distinct tokens in a batch  E char embedding  F CNN filters
    D projection, one direction  H cell  L layers incl. token layer
    N LSTM layers of one direction (L - 1)  V word vocabulary  K negative samples
    Tasks: X, Y widths of input and output (of scores: Y tags)  N, M positions of two texts

Batch first; stacked activations put layers first: ``(L, B, T, 2D)``. In ``2D`` the forward half
comes first. Id 0 is padding in every id space.
"""
