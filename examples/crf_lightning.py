"""A CRF tagger as a Lightning module. It needs `pip install lightning`."""

import lightning
import torch

import pullback as pb

WORDS, TAGS, n = 30, 4, 8


class Tagger(lightning.LightningModule):
    """Word embeddings, a convolution over neighbours, and a CRF; the CRF computes in float32 under every precision."""

    def __init__(self, words, tags, size=32):
        super().__init__()
        self.words = torch.nn.Embedding(words, size)
        self.context = torch.nn.Conv1d(size, tags, 3, padding=1)
        self.crf = pb.nn.CRF(tags, batch_first=True)

    def forward(self, words):
        return self.context(self.words(words).mT).mT

    def training_step(self, batch, index):
        words, tags, mask = batch
        return -self.crf(self(words), tags, mask, reduction="token_mean")

    def validation_step(self, batch, index):
        words, tags, mask = batch
        found = torch.tensor([tag for row in self.crf.decode(self(words), mask) for tag in row])
        self.log("accuracy", (found == tags[mask]).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def batches(count):
    """Tags that often repeat, words that hint at them, sentences of several lengths."""
    tags = torch.randint(TAGS, (count, 16, 1)).expand(-1, -1, n)
    tags = torch.where(torch.rand(count, 16, n) < 0.3, torch.randint(TAGS, (count, 16, n)), tags)
    noise = torch.randint(WORDS, (count, 16, n))
    words = torch.where(torch.rand(count, 16, n) < 0.6, tags + TAGS * (noise % 7), noise)
    mask = torch.arange(n) < torch.randint(3, n + 1, (count, 16, 1))
    return torch.utils.data.DataLoader(list(zip(words, tags, mask, strict=True)), batch_size=None)


torch.manual_seed(0)
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", **quiet)
model = Tagger(WORDS, TAGS)
trainer.fit(model, batches(60), batches(10))
print(f"accuracy {float(trainer.callback_metrics['accuracy']):.2f}")
