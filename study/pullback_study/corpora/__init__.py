"""Corpora: readers of the publishers' formats, word vectors, and the examples that models are trained on."""

from pullback_study.corpora.corpus import Batch, Corpus, Split, batches, gather, load
from pullback_study.corpora.files import CorpusError, choose_vectors, corpus_file, find_data, vector_file
from pullback_study.corpora.readers import Example, Parse, Vectors, read_conllu, read_vectors

__all__ = [
    "Batch", "Corpus", "CorpusError", "Example", "Parse", "Split", "Vectors", "batches",
    "choose_vectors", "corpus_file", "find_data", "gather", "load", "read_conllu", "read_vectors", "vector_file",
]  # fmt: skip
