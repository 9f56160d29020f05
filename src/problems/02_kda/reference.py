"""Kimi Delta Attention, forward, chunk by chunk. For reading and for comparison; the verdict never uses it."""

import torch
from torch import nn

B, T, H, K, V = 2, 1024, 8, 128, 128
CHUNK_SIZE = 64


class Model(nn.Module):
    """o (B, T, H, V) bf16 from q, k (B, T, H, K) bf16, v (B, T, H, V) bf16, g (B, T, H, K) fp32, beta (B, T, H) bf16.

    Per batch and head a memory S (K x V) fades by exp(g), one factor per channel and token. Token t then writes
    beta (v - k S) under its key and reads with its query: o = K**-0.5 * q S.
    """

    def __init__(self, B=B, T=T, H=H, K=K, V=V, chunk_size=CHUNK_SIZE):
        super().__init__()
        self.chunk_size = chunk_size
        self.scale = K**-0.5
        # The public contract has this and no other state.
        self.register_buffer("_dummy", torch.zeros(1), persistent=False)

    def forward(self, q, k, v, g, beta):
        # (B, T, H, x) -> (B, H, chunk, token, x)
        def chunks(x):
            x = x.float().transpose(1, 2)
            return x.reshape(x.shape[0], x.shape[1], -1, self.chunk_size, x.shape[-1])

        q, k, v, g = chunks(q) * self.scale, chunks(k), chunks(v), chunks(g)
        beta = chunks(beta.unsqueeze(-1))
        G = g.cumsum(dim=-2)
        tokens = torch.arange(self.chunk_size, device=q.device)
        later = tokens[:, None] < tokens[None, :]

        S = q.new_zeros(q.shape[0], q.shape[1], q.shape[-1], v.shape[-1])
        outputs = []
        for c in range(q.shape[2]):
            q_c, k_c, v_c, G_c, beta_c = q[:, :, c], k[:, :, c], v[:, :, c], G[:, :, c], beta[:, :, c]
            # How far channel d of key j has faded when token i comes; nothing of later tokens.
            fading = (G_c.unsqueeze(-2) - G_c.unsqueeze(-3)).masked_fill(later[..., None], float("-inf")).exp()
            faded_keys = fading * k_c.unsqueeze(-3)
            key_products = (k_c.unsqueeze(-2) * faded_keys).sum(-1).tril(-1)
            query_products = (q_c.unsqueeze(-2) * faded_keys).sum(-1)

            # What is written: beta (v - what the old memory and the chunk's earlier tokens answer to k).
            wanted = beta_c * (v_c - (k_c * G_c.exp()) @ S)
            written = torch.linalg.solve_triangular(beta_c * key_products, wanted, upper=False, unitriangular=True)
            outputs.append((q_c * G_c.exp()) @ S + query_products @ written)

            G_last = G_c[:, :, -1:, :]
            S = G_last.exp().transpose(-1, -2) * S + (k_c * (G_last - G_c).exp()).transpose(-1, -2) @ written

        o = torch.stack(outputs, dim=2)
        return o.flatten(2, 3).transpose(1, 2).to(torch.bfloat16).contiguous()


def get_inputs():
    q = (torch.randn(B, T, H, K) * 0.1).to(torch.bfloat16)
    k = (torch.randn(B, T, H, K) * 0.1).to(torch.bfloat16)
    v = (torch.randn(B, T, H, V) * 0.1).to(torch.bfloat16)
    g = torch.randn(B, T, H, K) * 0.1 - 0.05
    beta = torch.sigmoid(torch.randn(B, T, H).to(torch.bfloat16).float()).to(torch.bfloat16)
    return [q, k, v, g, beta]


def get_init_inputs():
    return [B, T, H, K, V, CHUNK_SIZE]
