"""Trains one of three common models on made-up data, as a script that joins does (docs/pytorch.md): resnet50, bert or lstm,
then ITERATIONS. Prints each loss to the bit."""

import sys

import tensile
import torch
from torch import nn
from torch.nn import functional as F
from torch_resnet import resnet50


class Bert(nn.Module):
    """The encoder of BERT base: 12 layers of 768, 12 heads; tokens are predicted by the embedding's own weights."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 12)

    def forward(self, x):
        h = self.layers(self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device)))
        return (h @ self.tokens.weight.t()).flatten(0, 1)


class Language(nn.Module):
    """A word language model: two layers of LSTM."""

    def __init__(self):
        super().__init__()
        self.tokens, self.lstm, self.out = nn.Embedding(10000, 650), nn.LSTM(650, 650, 2), nn.Linear(650, 10000)

    def forward(self, x):
        return self.out(self.lstm(self.tokens(x))[0]).flatten(0, 1)


MODELS = {  # the model, and what makes a batch: 16 pictures, 4 texts of 128 tokens, 20 texts of 35 words
    "resnet50": (resnet50, lambda: (torch.randn(16, 3, 96, 96), torch.randint(0, 1000, (16,)))),
    "bert": (Bert, lambda: (torch.randint(0, 30522, (4, 128)), torch.randint(0, 30522, (4 * 128,)))),
    "lstm": (Language, lambda: (torch.randint(0, 10000, (35, 20)), torch.randint(0, 10000, (35 * 20,)))),
}


def main(name, iterations):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make, batch = MODELS[name]
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    tensile.join(model, optimizer)
    for _ in range(int(iterations)):
        x, y = batch()
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
