"""Corpora: readers of the publishers' formats, word vectors, and what models are trained on."""

from pullback_study.corpora.batches import Batch, Batches, batches
from pullback_study.corpora.conllu import Parse, read_conllu
from pullback_study.corpora.corpus import Corpus, Split
from pullback_study.corpora.files import CorpusError
from pullback_study.corpora.layout import find_data, vector_file
from pullback_study.corpora.load import DEFAULT_VECTORS, load_snli, load_sst
from pullback_study.corpora.snli import Pair, read_snli
from pullback_study.corpora.sst import Sentence, read_sst
from pullback_study.corpora.vectors import Vectors, read_vectors

__all__ = [
    "DEFAULT_VECTORS",
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
    "find_data",
    "load_snli",
    "load_sst",
    "read_conllu",
    "read_snli",
    "read_sst",
    "read_vectors",
    "vector_file",
]
