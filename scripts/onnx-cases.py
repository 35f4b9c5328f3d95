"""Exports small networks with PyTorch as ONNX files, and stores beside each what PyTorch computes of it.

usage: onnx-cases.py FOLDER

NAME.onnx is exported in training mode by torch 2.15: by dynamo=False, or, with onnxscript, by the default exporter or one that
does not optimize. NAME.json holds inputs and labels of two steps, the loss and the gradients of the first, all parameters after two steps of SGD at a rate of 0.1, and the output in
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
LABELLED = ("unet", "masked", "tied")  # by pixel or word


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


class UNet(nn.Module):
    """Images that become smaller and larger again, normalised by image, with a label a pixel."""

    shape, classes = (2, 2, 8, 8), 3

    def __init__(self):
        super().__init__()
        self.down, self.norm1 = nn.Conv2d(2, 4, 3, padding=1), nn.InstanceNorm2d(4, affine=True)
        self.mid, self.norm2 = nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.GroupNorm(2, 8)
        self.low, self.act = nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.PReLU(8)
        self.up1 = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.up2, self.up3 = nn.ConvTranspose2d(4, 2, 2, stride=2, bias=False), nn.ConvTranspose2d(8, 2, (2, 3), 2)
        self.out = nn.Conv2d(10, 3, 1)

    def forward(self, x):
        a = F.leaky_relu(self.norm1(self.down(x)), 0.2)
        b = F.silu(self.norm2(self.mid(a)))
        c = self.act(self.low(b))
        d = self.up2(self.up1(c))
        e = F.interpolate(self.up3(c), size=(8, 8), mode="bilinear", align_corners=False)
        f = F.interpolate(c[:, :2], scale_factor=4, mode="nearest")
        return self.out(torch.cat([a, d, e, f], 1))


class Gates(nn.Module):
    """Recurrent layers in both directions: a GRU of two layers, and RNNs with both of their functions."""

    shape, classes, words = (3, 4), 3, 7

    def __init__(self):
        super().__init__()
        self.embed, self.gru = nn.Embedding(7, 5), nn.GRU(5, 4, 2, batch_first=True, bidirectional=True)
        self.relu = nn.RNN(8, 4, batch_first=True, nonlinearity="relu", bias=False)
        self.tanh, self.head = nn.RNN(4, 3, batch_first=True, bidirectional=True), nn.Linear(6, 3)

    def forward(self, x):
        h = self.relu(self.gru(self.embed(x))[0])[0]
        y, last = self.tanh(h)
        return self.head(y[:, 1] + torch.cat([last[0], last[1]], 1))


class Functions(nn.Module):
    """Functions of each element, of elements that are zero among others: there they have a bend."""

    shape, classes, sparse = (4, 24), 3, True

    def __init__(self):
        super().__init__()
        self.shift, self.slope = nn.Parameter(torch.zeros(24)), nn.Parameter(torch.full((1,), 0.3))
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        x = x + self.shift
        sizes = torch.abs(x) * torch.exp(-x * x) - 1 / (1 + x * x)
        y = F.elu(x) + F.selu(x) + F.celu(x, 0.7) + F.softplus(x) + F.softsign(x) + F.mish(x) + F.leaky_relu(x, 0.1)
        y = y + F.prelu(x, self.slope) + F.hardswish(x + 0.1) + F.hardsigmoid(x + 0.1) + F.relu6(x) + sizes
        return self.head(torch.minimum(torch.maximum(y, 0.5 * x - 1), x + 6))


class Pieces(nn.Module):
    """Padding of every kind, pieces of images, sums and extremes over dimensions."""

    shape, classes = (2, 4, 6, 6), 3

    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = nn.Conv2d(4, 8, 3), nn.Conv2d(2, 4, 3, padding=1), nn.Linear(4, 3)

    def forward(self, x):
        x = F.pad(x, (1, 2, 2, 1), "reflect") + F.pad(x, (2, 1, 1, 2), "replicate") + F.pad(x, (1, 2, 0, 3), value=0.5)
        x = F.pad(self.a(x), (-1, 1, 0, -1)).flip(3)
        x = F.pixel_shuffle(x, 2)
        x = self.b(x) + 0.3 * F.interpolate(x, scale_factor=1.5, mode="bicubic")[:, :1, :12, :14].repeat(1, 4, 1, 1)
        x = x - x.amax((2, 3), keepdim=True) + torch.logsumexp(x, 1, keepdim=True) + x.cumsum(2) / 12
        x = torch.tanh(x)
        gram = torch.einsum("nchw,ndhw->ncd", x, x) / 42
        return self.head(torch.einsum("ncd,nd->nc", gram, F.adaptive_max_pool2d(x, 1).flatten(1)))


class Masked(nn.Module):
    """Attention with a mask that the module keeps, as language models have it."""

    shape, classes, words = (2, 4), 7, 7

    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(7, 4), nn.Linear(4, 12), nn.Linear(4, 7)
        self.register_buffer("mask", torch.tril(torch.ones(6, 6)))

    def forward(self, x):
        n = x.shape[1]
        q, k, v = self.qkv(self.embed(x)).split(4, 2)
        a = (q @ k.transpose(1, 2)).masked_fill(self.mask[:n, :n] == 0, float("-inf")).softmax(-1)
        return self.head(a @ v)


class Fresh(nn.Module):
    """What begins equal: normalisations, biases of zero, a class token for each example."""

    shape, classes, words = (3, 4), 7, 7

    def __init__(self):
        super().__init__()
        self.embed, self.token, self.scale = nn.Embedding(7, 8), nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.tensor(1.5))
        self.a, self.b, self.c, self.zero = nn.LayerNorm(8), nn.LayerNorm(8), nn.LayerNorm(8), nn.LayerNorm(8)
        self.d, self.e, self.bn = nn.Linear(8, 8), nn.Linear(8, 8), nn.BatchNorm1d(8)
        self.register_buffer("table", torch.linspace(-1, 1, 8))
        self.head = nn.Linear(8, 7)
        for zero in (self.zero.weight, self.d.bias, self.e.bias, self.head.bias):
            nn.init.zeros_(zero)

    def forward(self, x):
        x = torch.cat([self.token.expand(len(x), -1, -1), self.embed(x)], 1)
        x = x + F.gelu(self.d(self.a(x))) * self.table
        x = x + self.zero(self.b(x))
        x = x.mean(1) * self.scale
        return self.head(self.bn(F.relu(self.e(self.c(x)))))


class Tied(nn.Module):
    """A table that is the last layer, too, which the file has a second time, transposed."""

    shape, classes, words, same = (3, 4), 7, 7, ("embed.weight", "head.weight")

    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(7, 8), nn.LayerNorm(8), nn.Linear(8, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.norm(self.embed(x)))


class Norms(nn.Module):
    """Batch and group normalisations after convolutions."""

    shape, classes = (4, 3, 5, 5), 3

    def __init__(self):
        super().__init__()
        self.a, self.an = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.b, self.bn = nn.Conv2d(4, 4, 3, padding=1), nn.GroupNorm(2, 4)
        self.c, self.cn, self.head = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        x = F.relu(self.bn(self.b(F.relu(self.an(self.a(x))))))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(F.hardswish(self.cn(self.c(x))), 1), 1))


def export_new(model, x, path, folds, **options):
    """Exports with the default exporter, and leaves out what it says of modules beside the calls that nodes are of."""
    p = torch.onnx.export(model, (x,), input_names=["x"], output_names=["y"], verbose=False, **options)
    if folds:
        import onnxscript.optimizer

        onnxscript.optimizer.fold_constants(p.model)
    for n in p.model.graph:
        for key in [k for k in n.metadata_props if k not in ("pkg.torch.onnx.fx_node", "pkg.onnxscript.rewriter.rule_name")]:
            del n.metadata_props[key]
        n.doc_string = None
    p.save(path, external_data=False)


def values(tensor):
    return [float(v) for v in tensor.detach().reshape(-1)]


def make(folder, name, model, opset, folds=False, **options):
    def batch():
        if hasattr(model, "words"):
            return torch.randint(0, model.words, model.shape)
        if hasattr(model, "sparse"):
            return torch.relu(torch.randn(model.shape))
        return torch.randn(model.shape)

    def named(key):  # two keys of one parameter
        first, last = getattr(model, "same", (None, None))
        return last if key == first else key

    def scores(x):
        y = model(x)
        return y.permute(0, 2, 3, 1).reshape(-1, model.classes) if y.dim() == 4 else y.reshape(-1, model.classes)

    model.train()
    xs = [batch(), batch()]
    rows = len(scores(xs[0])) if name in LABELLED else model.shape[0]
    ys = [torch.randint(0, model.classes, (rows,)) for _ in range(2)]
    path = f"{folder}/{name}.onnx"
    if opset is None:
        export_new(model, xs[0], path, folds, **options)
    else:  # running statistics move while torch traces the model: the file has them as they are afterwards
        torch.onnx.export(model, xs[0], path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, opset_version=opset, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})
    model.train()
    told = {"batch": model.shape[0], "input": [values(x) for x in xs], "labels": [values(y) for y in ys], "losses": [], "rate": RATE}
    for step, (x, y) in enumerate(zip(xs, ys)):
        model.zero_grad()
        loss = F.cross_entropy(scores(x), y)
        loss.backward()
        told["losses"].append(float(loss))
        if step == 0:
            told["gradients"] = {named(k): values(p.grad) for k, p in model.named_parameters()}
        with torch.no_grad():
            for p in model.parameters():
                p -= RATE * p.grad
    told["weights"] = {named(k): values(v) for k, v in model.state_dict().items() if v.is_floating_point()}
    model.eval()
    with torch.enable_grad():  # without it the encoder takes another path
        told["evaluation"] = values(scores(xs[0]))
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
    make(folder, "unet", UNet(), 14)
    make(folder, "gates", Gates(), 14)
    make(folder, "functions", Functions(), 17)
    make(folder, "pieces", Pieces(), 17)
    make(folder, "masked", Masked(), 14)
    make(folder, "fresh", Fresh(), None)
    make(folder, "tied", Tied(), None)
    make(folder, "norms", Norms(), None, optimize=False)
    make(folder, "norms_folded", Norms(), None, optimize=False, folds=True)


if __name__ == "__main__":
    main(sys.argv[1])
