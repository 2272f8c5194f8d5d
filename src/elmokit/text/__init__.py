"""Strings to tokens to ids: tokenizers, character rows, the word vocabulary (without torch).

raw text  --tokenizers-->  tokens  --char_vocab-->  char_ids (what the biLM reads)
                                   --word_vocab-->  word_ids (what the biLM predicts)
"""
