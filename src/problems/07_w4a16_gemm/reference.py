"""W4A16 matrix product, to be read: a linear layer whose weights are stored in four bits.

    out[m, n] = sum over k of x[m, k] * (q[k, n] - zeros[k // 128, n]) * scales[k // 128, n]

Byte w_q[r, n] holds q[2r, n] in its low nibble and q[2r + 1, n] in its high nibble. This text rounds the dequantised weight to
bf16 before the product; the verdict allows both that and the exact weight.
"""

import torch
import torch.nn as nn

OP_TYPE = "gemm_w4a16"
GROUP_SIZE = 128

M = 1
N = 12288
K = 4096


def quantise(weight: torch.Tensor, group_size: int):
    """Asymmetric round-to-nearest of fp32 (K, N): packed levels (K/2, N), scales and zeros (K/group_size, N)."""
    k, n = weight.shape
    groups = weight.view(k // group_size, group_size, n)
    low = groups.min(dim=1).values
    high = groups.max(dim=1).values
    scale = (high - low).clamp(min=1e-8) / 15
    zero = torch.round(-low / scale).clamp(0, 15)
    levels = torch.round(groups / scale[:, None, :] + zero[:, None, :]).clamp(0, 15)
    levels = levels.to(torch.uint8).view(k, n)
    packed = levels[0::2] | (levels[1::2] << 4)
    return packed.contiguous(), scale.to(torch.bfloat16), zero.to(torch.bfloat16)


def unpack(w_q: torch.Tensor) -> torch.Tensor:
    """Levels uint8 (K, N) of packed (K/2, N)."""
    pairs = torch.stack((w_q & 15, w_q >> 4), dim=1)
    return pairs.view(2 * w_q.shape[0], w_q.shape[1])


class Model(nn.Module):
    """x (M, K) bf16 -> (M, N) bf16. New weights are drawn for every object."""

    def __init__(self, M: int, N: int, K: int, group_size: int = GROUP_SIZE):
        super().__init__()
        assert K % group_size == 0 and K % 2 == 0, "whole groups, whole bytes"
        self.M, self.N, self.K, self.group_size = M, N, K, group_size
        w_q, scales, zeros = quantise(torch.randn(K, N) * 0.02, group_size)
        self.register_buffer("w_q", w_q)
        self.register_buffer("scales", scales)
        self.register_buffer("zeros", zeros)

    def weights(self) -> torch.Tensor:
        levels = unpack(self.w_q).float()
        scales = self.scales.float().repeat_interleave(self.group_size, dim=0)
        zeros = self.zeros.float().repeat_interleave(self.group_size, dim=0)
        return (levels - zeros) * scales

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = self.weights().to(torch.bfloat16)
        # In fp32, rounded once: a bf16 product may be split along K and reduced in bf16, depending on a global flag.
        return (x.float() @ weights.float()).to(torch.bfloat16)


def get_inputs():
    return [torch.randn(M, K).to(torch.bfloat16)]


def get_init_inputs():
    return [M, N, K]
