"""`convert` as the command line calls it: the frozen biLM compares source and destination."""

from functools import partial

from elmokit.inference.frozen_bilm import compute_layers
from elmokit.weights import convert as conversion

convert = partial(conversion.convert, compute=compute_layers)
