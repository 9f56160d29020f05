"""The k largest values of each row, descending, and where they stand. Sorts whole rows: it is here to be read, not to be
fast. Runs with PyTorch 1.13 and later."""

import torch
from torch import nn

# The first listed shape.
BATCH = 1
N = 131072
K = 64


class Model(nn.Module):
    """x fp32 (batch, n) -> values fp32 (batch, k), indices int64 (batch, k). Of equal values the first comes first."""

    def __init__(self, batch: int, n: int, k: int):
        super().__init__()
        self.batch = batch
        self.n = n
        self.k = k
        # Holds nothing; the public contract has it, so that every problem has something to load.
        self.register_buffer("_dummy", torch.zeros(1))

    def forward(self, x: torch.Tensor):
        values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
        return values[..., : self.k].contiguous(), indices[..., : self.k].contiguous()


def get_inputs():
    return [torch.randn(BATCH, N, dtype=torch.float32)]


def get_init_inputs():
    return [BATCH, N, K]
