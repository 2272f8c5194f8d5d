"""Tasks on top of vectors: data sets, models, answers and their scores."""
