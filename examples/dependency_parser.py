"""A dependency parser on CoNLL-U: a BiLSTM, biaffine scores, and a loss over trees (crf, hinge, sparsemap) or single heads.

    python examples/dependency_parser.py --data DIR --sentences 5000 --epochs 5 --loss crf

DIR has UD English EWT, en_ewt-ud-train.conllu.gz and so on. Without it, two sentences of this file are learnt by heart.
"""

import argparse
import gzip
import os
import random
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import pullback as pb

OPTIONS = argparse.ArgumentParser(allow_abbrev=False)
OPTIONS.add_argument("--data", default=os.path.join(os.environ.get("PULLBACK_DATA", ""), "ud-ewt"))
for name, value in {"sentences": 60, "epochs": 3, "seed": 0, "size": 64, "lr": 0.002}.items():
    OPTIONS.add_argument(f"--{name}", type=type(value), default=value)
OPTIONS.add_argument("--loss", default="crf", choices=["softmax", "crf", "hinge", "sparsemap"])
OPTIONS.add_argument("--nonprojective", action="store_true")
args = OPTIONS.parse_known_args()[0]
LOSSES = {"crf": pb.losses.CrossEntropy(), "hinge": pb.losses.Hinge(), "sparsemap": pb.losses.SparseMAPLoss()}
SMALL = ["the:2:det dog:3:nsubj sleeps:0:root", "she:2:nsubj reads:0:root a:5:det long:5:amod book:2:obj"]


def sentences(part, most):
    """Words, heads (0 is the root) and labels of each sentence; those without annotated heads are left out."""
    path = Path(args.data) / f"en_ewt-ud-{part}.conllu.gz"
    if not path.exists():
        return [tuple(zip(*(token.split(":") for token in line.split()), strict=True)) for line in SMALL * 10]
    blocks = gzip.decompress(path.read_bytes()).decode().strip().split("\n\n")
    rows = ([line.split("\t") for line in block.split("\n")] for block in blocks)
    words = ([row for row in sentence if row[0].isdigit()] for sentence in rows)  # no comments, multi-word tokens, empty nodes
    kept = [sentence for sentence in words if all(row[6].isdigit() for row in sentence)]
    return [tuple(zip(*((row[1], row[6], row[7]) for row in sentence), strict=True)) for sentence in kept[:most]]


def tree_of(lengths):
    return pb.DependencyTree(lengths, projective=not args.nonprojective, multiroot=False)


class Parser(nn.Module):
    def __init__(self, words, endings, labels, d):
        super().__init__()
        self.words, self.endings, self.drop = nn.Embedding(words, d), nn.Embedding(endings, d), nn.Dropout(0.3)
        self.encoder = nn.LSTM(2 * d, 2 * d, batch_first=True, bidirectional=True)
        self.root = nn.Parameter(torch.zeros(4 * d))
        self.head, self.modifier = (nn.Sequential(nn.Linear(4 * d, 2 * d), nn.ReLU()) for _ in range(2))
        self.arc, self.label = nn.Linear(2 * d, 2 * d + 1), nn.Linear(6 * d, labels)

    def forward(self, words, endings, lengths):
        x = self.drop(torch.cat([self.words(words), self.endings(endings)], -1))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        x = self.drop(pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0])
        x = torch.cat([self.root.expand(len(x), 1, -1), x], 1)  # the root is token 0
        heads, modifiers = self.head(x), self.modifier(x)
        arcs = self.arc(heads) @ torch.cat([modifiers, torch.ones_like(modifiers[..., :1])], -1).mT
        return pb.DependencyTree.from_root_first(arcs), heads, modifiers[:, 1:]

    def named(self, heads, modifiers, which):
        """The scores of the labels of each word, given its head."""
        heads = heads.gather(1, which.clamp_min(0)[..., None].expand_as(modifiers))
        return self.label(torch.cat([heads, modifiers, heads * modifiers], -1))


def batches(data, known, size=32):
    order = sorted(range(len(data)), key=lambda i: len(data[i][0]))
    for j in random.sample(range(0, len(order), size), len(range(0, len(order), size))):
        columns = []
        for words, heads, labels in [data[i] for i in order[j : j + size]]:
            named = ([w.lower() for w in words], [w[-3:] for w in words], labels)
            numbers = [[names.get(x, 0) for x in row] for row, names in zip(named, known, strict=True)]
            columns.append([torch.tensor(row) for row in (*numbers, list(map(int, heads)))])
        padded = [pad_sequence(column, batch_first=True) for column in zip(*columns, strict=True)]
        yield *padded, torch.tensor([len(column[0]) for column in columns])


def loss_of(arcs, heads, lengths):
    """The sum of the losses of the sentences; trees that are not of this kind (crossing arcs) are left out."""
    gold = pb.DependencyTree(lengths).from_heads(heads)
    if args.loss == "softmax":
        real = gold.sum(-2) > 0
        choices = torch.where(tree_of(lengths).allowed(arcs), arcs, -torch.inf)
        return -pb.Categorical().log_prob(choices.mT[real], gold.mT[real]).sum()
    kept = tree_of(lengths).contains(gold)
    return LOSSES[args.loss](tree_of(lengths[kept]), arcs[kept], target=gold[kept]).sum()


@torch.no_grad()
def evaluate(data):
    """Attachment scores without and with labels. The tree has the most expected arcs for the CRF (minimum Bayes risk)."""
    right = both = count = 0
    for words, endings, labels, heads, lengths in batches(data, known):
        (arcs, h, m), tree = model.eval()(words, endings, lengths), tree_of(lengths)
        if args.loss == "softmax":  # the best head of each word, whether or not that makes a tree
            best = torch.where(tree.allowed(arcs), arcs, -torch.inf).argmax(-2)
            found = torch.where(best == torch.arange(arcs.shape[-1]), 0, best + 1)
        else:
            found = tree.heads(tree.argmax(tree.marginals(arcs) if args.loss == "crf" else arcs))
        same = (found == heads) & (torch.arange(words.shape[1]) < lengths[:, None])
        both += int((same & (model.named(h, m, found).argmax(-1) == labels)).sum())
        right, count = right + int(same.sum()), count + int(lengths.sum())
    return 100 * right / count, 100 * both / count


torch.manual_seed(args.seed), random.seed(args.seed)
train, dev = sentences("train", args.sentences), sentences("dev", max(args.sentences // 2, 20))
known = [{w.lower() for s in train for w in s[0]}, {w[-3:] for s in train for w in s[0]}, {x for s in train for x in s[2]}]
known = [{value: i + 1 for i, value in enumerate(sorted(each))} for each in known]  # 0 is unknown
model = Parser(*[len(each) + 1 for each in known], args.size)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(args.epochs):
    start, total = time.perf_counter(), 0.0
    for words, endings, labels, heads, lengths in batches(train, known):
        words = words.masked_fill(torch.rand(words.shape) < 0.1, 0)
        arcs, h, m = model.train()(words, endings, lengths)
        real = torch.arange(words.shape[1]) < lengths[:, None]
        loss = loss_of(arcs, heads, lengths) / lengths.sum()
        loss = loss + nn.functional.cross_entropy(model.named(h, m, heads)[real], labels[real])
        optimizer.zero_grad(), loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * len(lengths) / len(train)
    seconds, scores = time.perf_counter() - start, evaluate(dev)
    print("epoch {}: loss {:.3f}, {:.1f} s, UAS {:.2f}, LAS {:.2f}".format(epoch + 1, total, seconds, *scores), flush=True)
