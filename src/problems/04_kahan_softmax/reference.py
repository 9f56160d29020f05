"""Softmax of each row, in fp64, rounded to fp32 once. One way among others to compute what the problem asks for: it is
here to be read, not to be fast. Runs with PyTorch 1.13 and later."""

import torch
import torch.nn as nn

# The first listed shape. EXTREME says how the logits are drawn.
BATCH = 32
VOCAB = 4096
EXTREME = False

SPIKES = 4  # extreme rows: so many logits ...
SPIKE = 30.0  # ... of this size


class Model(nn.Module):
    """x fp32 (batch, vocab) -> softmax over the last dimension, fp32 (batch, vocab). No parameters, no buffers."""

    def __init__(self, batch: int, vocab: int, extreme: bool = False):
        super().__init__()
        self.batch = batch
        self.vocab = vocab
        self.extreme = extreme

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float64)
        terms = torch.exp(wide - wide.amax(dim=-1, keepdim=True))
        return (terms / terms.sum(dim=-1, keepdim=True)).to(torch.float32)


def get_inputs():
    """New logits on every call: normal x 4, or normal x 2 with SPIKES random logits of each row set to SPIKE."""
    if not EXTREME:
        return [4.0 * torch.randn(BATCH, VOCAB, dtype=torch.float32)]
    x = 2.0 * torch.randn(BATCH, VOCAB, dtype=torch.float32)
    order = torch.rand(BATCH, VOCAB).argsort(dim=-1)
    x.scatter_(-1, order[:, : min(SPIKES, VOCAB)], SPIKE)
    return [x]


def get_init_inputs():
    return [BATCH, VOCAB, EXTREME]
