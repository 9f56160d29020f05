"""Mixture-of-experts up-projection with SwiGLU over rows that are already in expert order, to be read."""
import torch
import torch.nn as nn

T_total = 32768  # tokens
H = 4096  # width of a token
I = 1536  # columns of each projection
E = 128  # experts
K = 8  # experts per token: T_total * K rows


class Model(nn.Module):
    """out[r] = silu(hidden[r] @ W_gate[e]) * (hidden[r] @ W_up[e]), e the expert that owns row r."""

    def __init__(self, T_total: int, H: int, I: int, E: int, K: int):
        super().__init__()
        self.T_total, self.H, self.I, self.E, self.K = T_total, H, I, E, K
        self.W_gate = nn.Parameter((0.02 * torch.randn(E, H, I)).to(torch.bfloat16))
        self.W_up = nn.Parameter((0.02 * torch.randn(E, H, I)).to(torch.bfloat16))

    def forward(self, hidden: torch.Tensor, expert_offsets: torch.Tensor) -> torch.Tensor:
        """hidden (T_total * K, H) bf16; expert_offsets (E + 1) int32, ascending from 0 to T_total * K."""
        out = hidden.new_empty(hidden.shape[0], self.I)
        ends = expert_offsets.tolist()
        for e in range(self.E):
            begin, end = ends[e], ends[e + 1]
            if begin == end:
                continue
            x = hidden[begin:end].float()
            gate = x @ self.W_gate[e].float()
            up = x @ self.W_up[e].float()
            out[begin:end] = (gate * torch.sigmoid(gate) * up).to(out.dtype)
        return out


def get_inputs():
    rows = T_total * K
    hidden = (0.1 * torch.randn(rows, H)).to(torch.bfloat16)
    counts = torch.full((E,), rows // E, dtype=torch.int32)
    counts[: rows % E] += 1
    expert_offsets = torch.zeros(E + 1, dtype=torch.int32)
    expert_offsets[1:] = counts.cumsum(0)
    return [hidden, expert_offsets]


def get_init_inputs():
    return [T_total, H, I, E, K]
