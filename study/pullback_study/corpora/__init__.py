"""Corpora: readers of the publishers' formats, word vectors, and the examples that models are trained on."""

from pullback_study.corpora.corpus import Batch, Batches, Corpus, Split, batches, gather
from pullback_study.corpora.files import CorpusError
from pullback_study.corpora.layout import choose_vectors, corpus_file, find_data, vector_file
from pullback_study.corpora.loading import load
from pullback_study.corpora.readers import Example, Parse, read_conllu
from pullback_study.corpora.vectors import Vectors, read_vectors

__all__ = [
    "Batch", "Batches", "Corpus", "CorpusError", "Example", "Parse", "Split", "Vectors", "batches",
    "choose_vectors", "corpus_file", "find_data", "gather", "load", "read_conllu", "read_vectors", "vector_file",
]  # fmt: skip
