"""A dependency parser on CoNLL-U: a BiLSTM, biaffine scores, and a loss over trees (crf, hinge, sparsemap) or single heads.

    python examples/dependency_parser.py --data DIR --sentences 5000 --epochs 5 --loss crf

DIR has UD English EWT, en_ewt-ud-train.conllu.gz and so on. Without it, two sentences of this file are learnt by heart.
"""

import argparse
import functools
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
OPTIONS.add_argument("--loss", default="crf", choices=["softmax", "crf", "hinge", "sparsemap"])
OPTIONS.add_argument("--nonprojective", action="store_true")
args = OPTIONS.parse_known_args()[0]
LOSSES = {"crf": pb.losses.CrossEntropy(), "hinge": pb.losses.Hinge(), "sparsemap": pb.losses.SparseMAPLoss()}
SMALL = ["the:2:det dog:3:nsubj sleeps:0:root", "she:2:nsubj reads:0:root a:5:det long:5:amod book:2:obj"]
tree_of = functools.partial(pb.DependencyTree, projective=not args.nonprojective, multiroot=False)


def sentences(part, most):
    """Words, their endings, labels and heads (0 is the root) of each sentence; those without annotated heads are left out."""
    path = os.path.join(args.data, f"en_ewt-ud-{part}.conllu.gz")
    found = [[token.split(":") for token in line.split()] for line in SMALL * 10]
    if os.path.exists(path):  # words are the rows whose number is one, not comments, ranges and empty nodes
        with gzip.open(path, "rt") as file:
            rows = [[line.split("\t") for line in block.split("\n")] for block in file.read().strip().split("\n\n")]
        found = [[(row[1], row[6], row[7]) for row in each if row[0].isdigit()] for each in rows]
    kept = [sentence for sentence in found if all(head.isdigit() for _, head, _ in sentence)][:most]
    return [list(zip(*((w.lower(), w[-3:], label, int(head)) for w, head, label in each), strict=True)) for each in kept]


class Parser(nn.Module):
    def __init__(self, words, endings, labels, d):
        super().__init__()
        self.words, self.endings, self.drop = nn.Embedding(words, d), nn.Embedding(endings, d), nn.Dropout(0.3)
        self.root, self.encoder = nn.Parameter(torch.zeros(4 * d)), nn.LSTM(2 * d, 2 * d, batch_first=True, bidirectional=True)
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


def batches(data, size=32):
    """Words, endings, labels, heads and lengths, as numbers; sentences of a batch have nearly the same length."""
    order = sorted(data, key=lambda sentence: len(sentence[0]))
    for j in torch.randperm(-(-len(order) // size)).mul(size).tolist():
        columns = []
        for *rows, heads in order[j : j + size]:
            numbers = [[names.get(x, 0) for x in row] for row, names in zip(rows, known, strict=True)]
            columns.append([torch.tensor(row) for row in (*numbers, heads)])
        padded = (pad_sequence(column, batch_first=True) for column in zip(*columns, strict=True))
        yield *padded, torch.tensor([len(column[0]) for column in columns])


def loss_of(arcs, heads, lengths):
    """The sum of the losses of the sentences; trees that are not of this kind (crossing arcs) are left out."""
    gold = pb.DependencyTree(lengths).from_heads(heads)
    if args.loss == "softmax":
        real, choices = gold.sum(-2) > 0, arcs.masked_fill(~tree_of(lengths).allowed(arcs), -torch.inf)
        return -pb.Categorical().log_prob(choices.mT[real], gold.mT[real]).sum()
    kept = tree_of(lengths).contains(gold)
    return LOSSES[args.loss](tree_of(lengths[kept]), arcs[kept], target=gold[kept]).sum()


@torch.no_grad()
def evaluate(data):
    """Attachment scores without and with labels. The tree has the most expected arcs for the CRF (minimum Bayes risk)."""
    counts = torch.zeros(3)
    for words, endings, labels, heads, lengths in batches(data):
        (arcs, h, m), tree = model.eval()(words, endings, lengths), tree_of(lengths)
        if args.loss == "softmax":  # the best head of each word, whether or not that makes a tree
            best = arcs.masked_fill(~tree.allowed(arcs), -torch.inf).argmax(-2)
            found = torch.where(best == torch.arange(arcs.shape[-1]), 0, best + 1)
        else:
            found = tree.heads(tree.argmax(tree.marginals(arcs) if args.loss == "crf" else arcs))
        same = (found == heads) & (torch.arange(words.shape[1]) < lengths[:, None])
        named = model.named(h, m, found).argmax(-1) == labels
        counts += torch.stack([same.sum(), (same & named).sum(), lengths.sum()])
    return (100 * counts[:2] / counts[2]).tolist()


torch.manual_seed(args.seed)
train, dev = sentences("train", args.sentences), sentences("dev", max(args.sentences // 2, 20))
known = [{x: i for i, x in enumerate(sorted({x for s in train for x in s[k]}), 1)} for k in range(3)]  # 0: unknown, padding
model = Parser(*[len(each) + 1 for each in known], args.size)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(1, args.epochs + 1):
    start = time.process_time()
    for words, endings, labels, heads, lengths in batches(train):
        arcs, h, m = model.train()(words.masked_fill(torch.rand(words.shape) < 0.1, 0), endings, lengths)
        naming = nn.functional.cross_entropy(model.named(h, m, heads).mT, labels, ignore_index=0)
        loss = loss_of(arcs, heads, lengths) / lengths.sum() + naming
        optimizer.zero_grad(), loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0), optimizer.step()
    print("epoch {}: {:.1f} s, UAS {:.2f}, LAS {:.2f}".format(epoch, time.process_time() - start, *evaluate(dev)), flush=True)
