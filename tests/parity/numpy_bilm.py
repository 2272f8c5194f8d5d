"""The biLM once more, slowly, in NumPy and float64, from the equations in the original's terms.

Shares nothing with the package: it takes the options and datasets of the original files as they
are, raw character ids, the original's order of gates, one sentence and one step at a time.
"""

import numpy as np

BEGIN, END, WORD_BEGIN, WORD_END, PADDING = 256, 257, 258, 259, 260


def encode(words, max_characters):
    """<S>, words, </S> as rows of raw ids (T, C), by hand."""
    rows = []
    for codes in ([BEGIN], *(list(word.encode("utf-8")) for word in words), [END]):
        row = [WORD_BEGIN, *codes[: max_characters - 2], WORD_END]
        rows.append(row + [PADDING] * (max_characters - len(row)))
    return np.array(rows)


def layers_of(options, arrays, rows):
    """All layers (L, T, 2P) of one sentence: rows (T, C) of raw ids, or (T,) vocabulary lines."""
    arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
    return stacked_layers(options, arrays, np.stack([_token(options, arrays, row) for row in rows]))


def stacked_layers(options, arrays, tokens):
    """All layers (L, T, 2P) of one sentence of token vectors (T, P)."""
    arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
    forward = _stack(options["lstm"], arrays, 0, list(tokens))
    backward = [layer[::-1] for layer in _stack(options["lstm"], arrays, 1, list(tokens[::-1]))]
    layers = [np.concatenate((tokens, tokens), axis=1)]
    layers += [np.concatenate(pair, axis=1) for pair in zip(forward, backward, strict=True)]
    return np.stack(layers)


def _token(options, arrays, row):
    if "char_cnn" not in options:
        return arrays["embedding"][row]
    cnn = options["char_cnn"]
    x = arrays["char_embed"][row]  # (C, d)
    numbers = range(len(cnn["filters"]))
    filters = [(arrays[f"CNN/W_cnn_{i}"][0], arrays[f"CNN/b_cnn_{i}"]) for i in numbers]
    y = largest_matches(x, filters, cnn["activation"])
    for k in range(cnn.get("n_highway") or 0):
        layer = {name: arrays[f"CNN_high_{k}/{name}"] for name in _HIGHWAY}
        gate = sigmoid(y @ layer["W_carry"] + layer["b_carry"])
        transformed = np.maximum(y @ layer["W_transform"] + layer["b_transform"], 0)
        y = gate * transformed + (1 - gate) * y
    if "CNN_proj/W_proj" in arrays:
        y = y @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]
    return y


def largest_matches(x, filters, activation):
    """Slide filters, kernels (width, d, n) with biases, over characters (C, d); keep the maxima."""
    function = {"relu": lambda y: np.maximum(y, 0), "tanh": np.tanh}[activation]
    pooled = []
    for kernel, bias in filters:
        windows = [
            sum(x[t + w] @ kernel[w] for w in range(len(kernel))) + bias
            for t in range(len(x) - len(kernel) + 1)
        ]
        pooled.append(function(np.max(windows, axis=0)))
    return np.concatenate(pooled)


_HIGHWAY = ("W_carry", "b_carry", "W_transform", "b_transform")


def _stack(lstm, arrays, number, inputs):
    layers = []
    for level in range(lstm.get("n_layers", 1)):
        root = f"RNN_{number}/RNN/MultiRNNCell/Cell{level}/LSTMCell/"
        if root + "W_0" not in arrays:
            root = f"RNN_{number}/RNN/LSTMCell/"
        outputs = _layer(lstm, arrays, root, inputs)
        if level > 0 and lstm.get("use_skip_connections"):
            outputs = [output + below for output, below in zip(outputs, inputs, strict=True)]
        layers.append(np.stack(outputs))
        inputs = outputs
    return layers


def _layer(lstm, arrays, root, inputs):
    kernel, bias = arrays[root + "W_0"], arrays[root + "B"]
    cell, memory = np.zeros(lstm["dim"]), np.zeros(lstm["projection_dim"])
    outputs = []
    for x in inputs:
        i, j, f, o = np.split(np.concatenate((x, memory)) @ kernel + bias, 4)
        cell = sigmoid(f + 1.0) * cell + sigmoid(i) * np.tanh(j)
        if lstm.get("cell_clip"):
            cell = np.clip(cell, -lstm["cell_clip"], lstm["cell_clip"])
        memory = sigmoid(o) * np.tanh(cell)
        if root + "W_P_0" in arrays:
            memory = memory @ arrays[root + "W_P_0"]
            if lstm.get("proj_clip"):
                memory = np.clip(memory, -lstm["proj_clip"], lstm["proj_clip"])
        outputs.append(memory)
    return outputs


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
