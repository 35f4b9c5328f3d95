"""Exports small networks with PyTorch as ONNX files, and stores beside each what PyTorch computes of it.

usage: onnx-cases.py FOLDER

NAME.onnx is exported in training mode, as torch 1.13 does it without the onnx package. NAME.json holds inputs and labels of
two steps, the loss and the gradients of the first, all parameters after two steps of SGD at a rate of 0.1, and the output in
evaluation mode after that.
"""

import json
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")
RATE = 0.1


class CNN(nn.Module):
    shape, classes = (4, 2, 8, 8), 3

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.drop, self.fc = nn.Dropout(0.0), nn.Linear(4 * 2 * 2, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = x + F.relu(self.bn2(self.conv2(x)))
        return self.fc(self.drop(torch.flatten(F.avg_pool2d(x, 2), 1)))


class Encoder(nn.Module):
    shape, classes, words = (3, 5), 4, 7

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(7, 8), nn.Parameter(torch.randn(5, 8) * 0.1)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.layer(self.embed(x) + self.place).mean(1))


class LSTM(nn.Module):
    shape, classes = (3, 4, 5), 3

    def __init__(self):
        super().__init__()
        self.l, self.head = nn.LSTM(5, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.l(x)[0][:, -1])


def values(tensor):
    return [float(v) for v in tensor.detach().reshape(-1)]


def make(folder, name, model, opset):
    def batch():
        if hasattr(model, "words"):
            return torch.randint(0, model.words, model.shape)
        return torch.randn(model.shape)

    model.train()
    xs, ys = [batch(), batch()], [torch.randint(0, model.classes, (model.shape[0],)) for _ in range(2)]
    # running statistics move while torch traces the model: the file has them as they are afterwards
    torch.onnx.export(model, xs[0], f"{folder}/{name}.onnx", training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, opset_version=opset, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})
    model.train()
    told = {"input": [values(x) for x in xs], "labels": [values(y) for y in ys], "losses": [], "rate": RATE}
    for step, (x, y) in enumerate(zip(xs, ys)):
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        told["losses"].append(float(loss))
        if step == 0:
            told["gradients"] = {k: values(p.grad) for k, p in model.named_parameters()}
        with torch.no_grad():
            for p in model.parameters():
                p -= RATE * p.grad
    told["weights"] = {k: values(v) for k, v in model.state_dict().items() if v.is_floating_point()}
    model.eval()
    with torch.enable_grad():  # without it the encoder takes another path
        told["evaluation"] = values(model(xs[0]))
    with open(f"{folder}/{name}.json", "w") as f:
        json.dump(told, f)
        f.write("\n")


def main(folder):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make(folder, "cnn", CNN(), 13)
    make(folder, "encoder", Encoder(), 14)
    make(folder, "encoder17", Encoder(), 17)
    make(folder, "lstm", LSTM(), 14)


if __name__ == "__main__":
    main(sys.argv[1])
