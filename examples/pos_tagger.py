"""Part-of-speech tags on CoNLL-U: a BiLSTM with a CRF of pullback, one of pytorch-crf, or a softmax for each word.

    python examples/pos_tagger.py --data DIR --sentences 5000 --epochs 5 --crf pullback

DIR has UD English EWT, en_ewt-ud-train.conllu.gz and so on. Without it, two sentences of this file are learnt by heart.
"""

import argparse
import gzip
import os
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import pullback as pb

OPTIONS = argparse.ArgumentParser(allow_abbrev=False)
OPTIONS.add_argument("--data", default=os.path.join(os.environ.get("PULLBACK_DATA", ""), "ud-ewt"))
for name, value in {"sentences": 60, "epochs": 3, "seed": 0, "size": 64, "lr": 0.002}.items():
    OPTIONS.add_argument(f"--{name}", type=type(value), default=value)
OPTIONS.add_argument("--crf", default="pullback", choices=["pullback", "pytorch-crf", "softmax"])
args = OPTIONS.parse_known_args()[0]
SMALL = ["the:DET dog:NOUN sleeps:VERB", "she:PRON reads:VERB a:DET long:ADJ book:NOUN"]


def sentences(part, most):
    """Words, their endings and tags of each sentence."""
    path = os.path.join(args.data, f"en_ewt-ud-{part}.conllu.gz")
    found = [[token.split(":") for token in line.split()] for line in SMALL * 10]
    if os.path.exists(path):  # words are the rows whose number is one, not comments, ranges and empty nodes
        with gzip.open(path, "rt") as file:
            rows = [[line.split("\t") for line in block.split("\n")] for block in file.read().strip().split("\n\n")]
        found = [[(row[1], row[3]) for row in each if row[0].isdigit()] for each in rows]
    return [list(zip(*((w.lower(), w[-3:], tag) for w, tag in each), strict=True)) for each in found[:most]]


class Tagger(nn.Module):
    def __init__(self, words, endings, tags, d):
        super().__init__()
        self.words, self.endings, self.drop = nn.Embedding(words, d), nn.Embedding(endings, d), nn.Dropout(0.3)
        self.encoder, self.emissions = nn.LSTM(2 * d, d, batch_first=True, bidirectional=True), nn.Linear(2 * d, tags)
        if args.crf == "pytorch-crf":
            from torchcrf import CRF
        else:
            CRF = pb.nn.CRF
        self.crf = CRF(tags, batch_first=True)

    def forward(self, words, endings, lengths):
        x = self.drop(torch.cat([self.words(words), self.endings(endings)], -1))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.emissions(self.drop(pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0]))

    def loss(self, emissions, tags, mask):
        if args.crf == "softmax":
            return nn.functional.cross_entropy(emissions[mask], tags[mask])
        return -self.crf(emissions, tags, mask, reduction="token_mean")

    def best(self, emissions, mask):
        if args.crf == "softmax":
            return emissions.argmax(-1)[mask]
        return torch.tensor([tag for row in self.crf.decode(emissions, mask) for tag in row])


def batches(data, size=32):
    """Words, endings and tags as numbers, lengths and masks; sentences of a batch have nearly the same length."""
    order = sorted(data, key=lambda sentence: len(sentence[0]))
    for j in torch.randperm(-(-len(order) // size)).mul(size).tolist():
        columns = [
            [torch.tensor([names.get(x, 0) for x in row]) for row, names in zip(sentence, known, strict=True)]
            for sentence in order[j : j + size]
        ]
        padded = [pad_sequence(column, batch_first=True) for column in zip(*columns, strict=True)]
        lengths = torch.tensor([len(column[0]) for column in columns])
        yield *padded, lengths, torch.arange(int(lengths.max())) < lengths[:, None]


@torch.no_grad()
def evaluate(data):
    """The share of right tags."""
    right = count = 0
    for words, endings, tags, lengths, mask in batches(data):
        right += int((model.best(model.eval()(words, endings, lengths), mask) == tags[mask]).sum())
        count += int(lengths.sum())
    return 100 * right / count


torch.manual_seed(args.seed)
train, dev = sentences("train", args.sentences), sentences("dev", max(args.sentences // 2, 20))
known = [{x: i for i, x in enumerate(sorted({x for s in train for x in s[k]}), 1)} for k in range(3)]  # 0: unknown, padding
model = Tagger(*[len(each) + 1 for each in known], args.size)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(1, args.epochs + 1):
    start = time.process_time()
    for words, endings, tags, lengths, mask in batches(train):
        words = words.masked_fill(torch.rand(words.shape) < 0.1, 0)
        loss = model.loss(model.train()(words, endings, lengths), tags, mask)
        optimizer.zero_grad(), loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0), optimizer.step()
    seconds, before = time.process_time() - start, time.process_time()
    accuracy = evaluate(dev)
    print(f"epoch {epoch}: {seconds:.1f} s, accuracy {accuracy:.2f}, decoding {time.process_time() - before:.1f} s", flush=True)
