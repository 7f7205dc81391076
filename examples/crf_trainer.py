"""A CRF on a small Transformer with sub-words, through the Hugging Face Trainer. It starts from random weights.

Words are cut into pieces, as tokenizers do. Only the first piece of a word has a label; the others, [CLS] and [SEP] have -100,
and the CRF joins the labels of words over these holes. It needs `pip install transformers accelerate`.
"""

import tempfile

import torch
from transformers import BertConfig, BertModel, Trainer, TrainingArguments
from transformers.modeling_outputs import TokenClassifierOutput

from pullback.nn import CRF, allowed_transitions

LABELS = ["O", "B-CITY", "I-CITY"]
PIECES = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "I": 3, "left": 4, "saw": 5, "New": 6, "York": 7, "Par": 8, "##is": 9, "old": 10}
WORDS = {"Paris": ["Par", "##is"]} | {word: [word] for word in ("I", "left", "saw", "New", "York", "old")}
CITIES = (["New", "York"], ["Paris"], ["York"])


class Tagger(torch.nn.Module):
    """A Transformer, emissions, and a CRF over the positions with a label."""

    def __init__(self, labels, **sizes):
        super().__init__()
        config = BertConfig(vocab_size=len(PIECES), max_position_embeddings=32, **sizes)
        self.encoder = BertModel(config, add_pooling_layer=False)
        self.emissions = torch.nn.Linear(config.hidden_size, len(labels))
        self.crf = CRF(len(labels), batch_first=True, constraints=allowed_transitions("BIO", labels))

    def forward(self, input_ids, attention_mask, labels=None):
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        emissions = self.emissions(hidden)
        loss = None if labels is None else -self.crf(emissions, labels, attention_mask.bool(), reduction="mean")
        return TokenClassifierOutput(loss=loss, logits=emissions)


def sentence():
    """Words with cities among them, as pieces with their labels."""
    ids, labels = [PIECES["[CLS]"]], [-100]
    for _ in range(int(torch.randint(2, 5, ()))):
        if torch.rand(()) < 0.5:
            words, tags = CITIES[int(torch.randint(len(CITIES), ()))], None
        else:
            words, tags = [["I", "left", "saw", "old"][int(torch.randint(4, ()))]], 0
        for i, word in enumerate(words):
            for j, piece in enumerate(WORDS[word]):
                ids.append(PIECES[piece])
                labels.append(-100 if j else (tags if tags is not None else 1 + (i > 0)))
    return {"input_ids": [*ids, PIECES["[SEP]"]], "labels": [*labels, -100]}


def collate(examples):
    n = max(len(example["input_ids"]) for example in examples)
    batch = {"input_ids": [], "attention_mask": [], "labels": []}
    for example in examples:
        fill = n - len(example["input_ids"])
        batch["input_ids"].append(example["input_ids"] + [0] * fill)
        batch["attention_mask"].append([1] * (n - fill) + [0] * fill)
        batch["labels"].append(example["labels"] + [-100] * fill)
    return {name: torch.tensor(rows) for name, rows in batch.items()}


torch.manual_seed(0)
train, test = [sentence() for _ in range(600)], [sentence() for _ in range(100)]
model = Tagger(LABELS, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=5e-3, report_to=[], use_cpu=True,
        logging_strategy="no", save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=train, data_collator=collate).train()

batch = collate(test)
model.eval()
with torch.no_grad():
    emissions = model(batch["input_ids"], batch["attention_mask"]).logits
words = batch["labels"] != -100  # the first piece of each word: a mask with holes
found = model.crf.decode(emissions, words)
right = torch.tensor([tag for row in found for tag in row]) == batch["labels"][words]
print(f"accuracy of words: {float(right.float().mean()):.3f}")

example = torch.tensor([[1, 3, 5, 6, 7, 2]])  # [CLS] I saw New York [SEP]
emissions = model(example, torch.ones_like(example)).logits
mask = torch.tensor([[0, 1, 1, 1, 1, 0]]).bool()
(confidence,) = model.crf.confidence(emissions, [[(3, 5, "CITY"), (4, 5, "CITY")]], mask)
print(f"New York is a city: {confidence[0]:.3f}; York alone is one: {confidence[1]:.3f}")
