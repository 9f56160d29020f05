"""One decode step of lightning attention, in plain PyTorch. To be read and run; the verdict never uses it.

A head remembers all former tokens in one 128 x 128 matrix. A new token lets it fade, writes its value under its key,
and reads with its query. Heads fade at different speeds: head h of H by exp(-2^(-8 (h + 1) / H)) per token.
"""

import torch
from torch import nn

B = 1
H = 64
D = 128


class Model(nn.Module):
    """q, k, v bf16 (B, H, 128); s fp32 (B, H, 128, 128); decay fp32 (H) -> s_next like s, o like q."""

    def __init__(self, B: int, H: int):
        super().__init__()
        self.B = B
        self.H = H

    def forward(self, q, k, v, s, decay):
        q, k, v = q.float(), k.float(), v.float()
        written = k.unsqueeze(-1) * v.unsqueeze(-2)  # rows: channels of the key, columns: channels of the value
        s_next = decay.view(1, self.H, 1, 1) * s + written
        # Multiplied and summed in fp32: a matrix product might use tf32 on a GPU, which is no fp32 any more.
        o = (q.unsqueeze(-1) * s_next).sum(dim=-2)  # the query is not scaled
        return s_next, o.to(torch.bfloat16)


def head_decay(heads: int) -> torch.Tensor:
    exponents = torch.arange(1, heads + 1, dtype=torch.float64) * (-8.0 / heads)
    return torch.exp(-torch.pow(torch.tensor(2.0, dtype=torch.float64), exponents)).float()


def get_inputs():
    q, k, v = (torch.randn(B, H, D).to(torch.bfloat16) for _ in range(3))
    s = torch.randn(B, H, D, D)
    return [q, k, v, s, head_decay(H)]


def get_init_inputs():
    return [B, H]
