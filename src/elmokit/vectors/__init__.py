"""Static word vectors: trained, and read from files of every form."""
