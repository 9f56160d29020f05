"""Paged attention, one decode step, in plain PyTorch: what `out` must hold, up to roundings.

Model(batch, num_heads, num_kv_heads, head_dim, seq_len, page_size) has no parameters and no buffers that matter.
forward(query, kv_cache, block_table, seq_lens) -> out
    query        bfloat16 (batch, num_heads, head_dim)
    kv_cache     bfloat16 (total_pages, page_size, num_kv_heads, 2 * head_dim); the last dimension is [key | value]
    block_table  int32    (batch, pages_per_seq): pages of each sequence, in the order of its tokens
    seq_lens     int32    (batch): tokens of each sequence; slots beyond them may hold anything
    out          bfloat16 (batch, num_heads, head_dim)
"""

import math

import torch

# The first listed shape; a grader sets others.
BATCH = 8
NUM_HEADS = 32
NUM_KV_HEADS = 8
HEAD_DIM = 128
SEQ_LEN = 1024
PAGE_SIZE = 16


class Model(torch.nn.Module):
    def __init__(self, batch, num_heads, num_kv_heads, head_dim, seq_len, page_size):
        super().__init__()
        self.batch = batch
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = head_dim
        self.seq_len = seq_len
        self.page_size = page_size
        self.group_size = num_heads // num_kv_heads
        self.scale = 1.0 / math.sqrt(head_dim)
        # A state dictionary of a parameterless module is empty; this keeps device and dtype moves meaningful.
        self.register_buffer("_dummy", torch.zeros(1), persistent=False)

    def forward(self, query, kv_cache, block_table, seq_lens):
        out = torch.empty_like(query)
        for sequence in range(query.shape[0]):
            length = int(seq_lens[sequence])
            pages = block_table[sequence, : -(-length // self.page_size)].long()
            # Only valid tokens are looked at: behind them may stand NaN.
            tokens = kv_cache[pages].flatten(0, 1)[:length].float()
            keys, values = tokens.split(self.head_dim, dim=-1)  # (length, num_kv_heads, head_dim) each
            q = query[sequence].float().view(self.num_kv_heads, self.group_size, self.head_dim)
            scores = torch.einsum("kgd,tkd->kgt", q, keys) * self.scale
            weights = torch.softmax(scores, dim=-1)
            attended = torch.einsum("kgt,tkd->kgd", weights, values)
            out[sequence] = attended.reshape(self.num_heads, self.head_dim).to(query.dtype)
        return out


def get_inputs():
    """New values on every call, in the order of forward's arguments."""
    pages_per_seq = -(-SEQ_LEN // PAGE_SIZE)
    total_pages = max(BATCH * pages_per_seq + 8, 64)
    query = (torch.randn(BATCH, NUM_HEADS, HEAD_DIM) * 0.1).to(torch.bfloat16)
    kv_cache = (torch.randn(total_pages, PAGE_SIZE, NUM_KV_HEADS, 2 * HEAD_DIM) * 0.1).to(torch.bfloat16)
    pages = torch.randperm(total_pages)[: BATCH * pages_per_seq]
    block_table = pages.view(BATCH, pages_per_seq).to(torch.int32)
    seq_lens = torch.full((BATCH,), SEQ_LEN, dtype=torch.int32)
    return [query, kv_cache, block_table, seq_lens]


def get_init_inputs():
    return [BATCH, NUM_HEADS, NUM_KV_HEADS, HEAD_DIM, SEQ_LEN, PAGE_SIZE]
