"""A training step of the scgpt shape in PyTorch (eager, one thread, no positions: rotation would be more) over ours.

    bench/run transformer nothing          # builds
    python3 bench/transformer_torch.py build/bench/bench/bench_transformer

Needs Debian's python3-torch; processor time, the least of three rounds that take turns. Both choose OpenBLAS's
kernel alike when OPENBLAS_CORETYPE is set.
"""
import os
import subprocess
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
import torch
from torch import nn

FEATURES, LENGTH, BATCH, WIDTH, HEADS, INNER, BLOCKS, DROPOUT = 1023, 1024, 4, 512, 8, 512, 4, 0.2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature = nn.Embedding(FEATURES + 1, WIDTH)
        self.feature_norm = nn.LayerNorm(WIDTH)
        self.value = nn.Sequential(nn.Linear(1, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.value_norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(DROPOUT)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, DROPOUT, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, BLOCKS)
        self.decoder = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(), nn.Linear(WIDTH, WIDTH),
                                     nn.LeakyReLU(), nn.Linear(WIDTH, 1))

    def forward(self, feature, value, hidden):
        x = self.feature_norm(self.feature(feature)) + self.value_norm(self.value(value.unsqueeze(-1)))
        return self.decoder(self.blocks(self.dropout(x))[hidden]).squeeze(-1)


def seconds_of_step(steps=3):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Model().train()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1)
    feature = torch.arange(LENGTH).repeat(BATCH, 1)
    value = torch.rand(BATCH, LENGTH)
    best = float("inf")
    for step in range(1 + steps):  # the first warms up
        start = time.process_time()
        hidden = torch.rand(BATCH, LENGTH) < 0.4
        loss = nn.functional.mse_loss(model(feature, value.masked_fill(hidden, -1.0), hidden), value[hidden])
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        if step > 0:
            best = min(best, time.process_time() - start)
    return best


def ours(program):
    return float(subprocess.run([program, "seconds"], check=True, capture_output=True, text=True).stdout)


rounds = [(seconds_of_step(), ours(sys.argv[1])) for _ in range(3)]
theirs, mine = (min(column) for column in zip(*rounds))
print(f"PyTorch {torch.__version__}: {theirs:.2f} s a step, ours {mine:.2f} s: ratio {theirs / mine:.2f} (bar 2)")
