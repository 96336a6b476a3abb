import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, ids, scale):
        x = self.embedding(ids)
        y, _ = self.attention(x, x, x, need_weights=False)
        return self.head(self.norm(x + y).mean(1)) * scale


def make():
    torch.manual_seed(0)
    return Classifier()
