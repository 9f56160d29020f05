"""out = bf16(weight_scale * (x weight^T)), with x and weight in fp8 e4m3. To be read, and to be run on small shapes."""

import torch
from torch import nn

M, N, K = 4096, 4096, 4096

# Older releases of PyTorch lack the type: e4m3 is then a tensor of bytes.
E4M3 = getattr(torch, "float8_e4m3fn", torch.uint8)
LARGEST = 448.0


def e4m3_magnitudes() -> torch.Tensor:
    """The 127 finite magnitudes, ascending: entry i is what the byte i stands for."""
    code = torch.arange(127)
    exponent, mantissa = code // 8, (code % 8).float()
    subnormal = mantissa / 8 * 2.0**-6
    normal = (1 + mantissa / 8) * torch.pow(2.0, (exponent - 7).float())
    return torch.where(exponent == 0, subnormal, normal)


def to_e4m3(value: torch.Tensor) -> torch.Tensor:
    """To the nearest, ties to the even mantissa. Magnitudes must not exceed 448."""
    if E4M3 is not torch.uint8:
        return value.to(E4M3)
    table = e4m3_magnitudes()
    between = (table[1:] + table[:-1]) / 2  # exact: one bit more than e4m3 has
    magnitude = value.abs().float().contiguous()
    code = torch.bucketize(magnitude, between)  # a tie gets the lower code
    is_tie = magnitude == torch.cat([between, between.new_tensor([float("inf")])])[code]
    code = torch.where(is_tie & (code % 2 == 1), code + 1, code)
    negative = torch.signbit(value)
    return torch.where(negative, code + 128, code).to(torch.uint8)


def from_e4m3(value: torch.Tensor) -> torch.Tensor:
    """To fp32, exactly."""
    if E4M3 is not torch.uint8:
        return value.float()
    magnitudes = torch.cat([e4m3_magnitudes(), torch.tensor([float("nan")])])
    return torch.cat([magnitudes, -magnitudes])[value.long()]


class Model(nn.Module):
    """A linear layer whose weights are e4m3 with one fp32 scale per output column."""

    def __init__(self, M: int, N: int, K: int):
        super().__init__()
        weight = (torch.randn(N, K) * 0.02).to(torch.bfloat16).float()
        scale = (weight.abs().amax(dim=1) / LARGEST).clamp(min=1e-12)
        self.register_buffer("weight", to_e4m3(weight / scale[:, None]))  # e4m3 (N, K)
        self.register_buffer("weight_scale", scale)  # fp32 (N)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x e4m3 (M, K) -> out bf16 (M, N)."""
        product = from_e4m3(x) @ from_e4m3(self.weight).t()
        return (product * self.weight_scale).to(torch.bfloat16)


def get_inputs() -> list:
    return [to_e4m3(torch.rand(M, K) * 8 - 4)]


def get_init_inputs() -> list:
    return [M, N, K]
