"""Corpora: readers of the publishers' formats, word vectors, and the examples that models are trained on."""

from pullback_study.corpora.batches import Batch, Batches, batches
from pullback_study.corpora.conllu import Parse, read_conllu
from pullback_study.corpora.corpus import Corpus, Split
from pullback_study.corpora.files import CorpusError
from pullback_study.corpora.layout import VECTOR_ORDER, choose_vectors, find_data, vector_file
from pullback_study.corpora.load import load_ewt, load_snli, load_sst
from pullback_study.corpora.snli import Pair, read_snli
from pullback_study.corpora.sst import Sentence, read_sst
from pullback_study.corpora.vectors import Vectors, read_vectors

__all__ = [
    "VECTOR_ORDER",
    "Batch",
    "Batches",
    "Corpus",
    "CorpusError",
    "Pair",
    "Parse",
    "Sentence",
    "Split",
    "Vectors",
    "batches",
    "choose_vectors",
    "find_data",
    "load_ewt",
    "load_snli",
    "load_sst",
    "read_conllu",
    "read_snli",
    "read_sst",
    "read_vectors",
    "vector_file",
]
