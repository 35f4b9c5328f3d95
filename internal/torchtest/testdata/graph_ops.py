"""Forward ops of Tensile's graphs as torch defines them. Gradients and updates are torch's own (autograd, torch.optim)."""

import torch
import torch.nn.functional as F


def pairs(attrs, name, otherwise=0):
    return tuple(attrs.get(name, [otherwise, otherwise]))


def conv2d_dx(a, x, w):
    """The gradient of a convolution in what it reads, as a forward op: a transposed convolution."""
    stride, pad, extent, kernel = pairs(a, "stride"), pairs(a, "pad"), pairs(a, "extent"), pairs(a, "kernel")
    rest = [extent[d] - (x.shape[2 + d] - 1) * stride[d] - kernel[d] + 2 * pad[d] for d in range(2)]
    return F.conv_transpose2d(x, w, None, stride, pad, rest, groups=max(1, a.get("groups", 0)))


def conv2d(a, x, w, b=None):
    return F.conv2d(x, w, b, pairs(a, "stride"), pairs(a, "pad"), groups=max(1, a.get("groups", 0)))


def padded(x, pad, value):
    """F.max_pool2d takes no padding above half of its window, F.pad takes any."""
    return F.pad(x, (pad[1], pad[1], pad[0], pad[0]), value=value)


def max_pool(a, x):
    return F.max_pool2d(padded(x, pairs(a, "pad"), float("-inf")), pairs(a, "kernel"), pairs(a, "stride"))


def avg_pool(a, x):
    return F.avg_pool2d(x, pairs(a, "kernel"), pairs(a, "stride"), pairs(a, "pad"), count_include_pad=not a.get("inside", False))


def pad(a, x):
    (top, left), (height, width) = pairs(a, "pad"), pairs(a, "extent")
    return F.pad(x, (left, width - left - x.shape[3], top, height - top - x.shape[2]))


def lrn(a, x):
    length = a["length"]
    return F.local_response_norm(x, length, alpha=a.get("factor", 0) * length, beta=a.get("exponent", 0), k=a["epsilon"])


def batch_norm(a, x, mean, variance, gamma, beta):
    return F.batch_norm(x, None, None, gamma, beta, True, 0, a["epsilon"])


def slice_(a, x):
    return x.narrow(a.get("dim", 0), a.get("begin", 0), a["length"])


def slice_dx(a, x):
    dim, begin = a.get("dim", 0), a.get("begin", 0)
    sides = [0, 0] * (x.dim() - 1 - dim) + [begin, a["extent"][0] - begin - x.shape[dim]]
    return F.pad(x, sides)


def softmax_xent(a, logits, labels):
    labels = torch.where(labels < 0, torch.full_like(labels, -100), labels).long()
    return F.cross_entropy(logits, labels), F.softmax(logits, 1)


def layer_norm(a, x, gamma, beta):
    return F.layer_norm(x, x.shape[1:], gamma, beta, a["epsilon"]), None, None


def matmul(a, x, y):
    x = x.transpose(1, 2) if a.get("transpose_a") else x
    y = y.transpose(1, 2) if a.get("transpose_b") else y
    return torch.bmm(x, y)


def softmax(a, x):
    x = x * a["factor"]
    if a.get("causal"):
        x = x.masked_fill(torch.ones(x.shape[1:], dtype=torch.bool).triu(1), float("-inf"))
    return F.softmax(x, 2)


def additive_scores(a, q, k, v):
    return torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)) @ v


def lstm(a, x, r=None, c=None):
    """A cell of torch whose gates are given: its weights are the identity, and it has no h to multiply."""
    width = x.shape[1] // 4
    h = x.new_zeros(x.shape[0], width)
    if r is None:
        r, c = torch.zeros_like(x), h
    return torch.lstm_cell(x + r, (h, c), torch.eye(4 * width, dtype=x.dtype), x.new_zeros(4 * width, width))


# Each takes the op's attributes and inputs and returns its output, or all of them; None stands for one that only gradients read.
ops = {
    "conv2d": conv2d,
    "conv2d_dx": conv2d_dx,
    "linear": lambda a, x, w, b=None: F.linear(x, w, b),
    "relu": lambda a, x: F.relu(x),
    "max_pool": max_pool,
    "avg_pool": avg_pool,
    "pad": pad,
    "lrn": lrn,
    "batch_norm_stats": lambda a, x: (x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)),
    "batch_norm": batch_norm,
    "add": lambda a, x, y: x + y,
    "mul": lambda a, x, y: x * y,
    "affine": lambda a, x: x * a.get("factor", 0) + a.get("shift", 0),
    "power": lambda a, x: x ** a.get("exponent", 0),
    "exp": lambda a, x: torch.exp(x),
    "log": lambda a, x: torch.log(x),
    "erf": lambda a, x: torch.erf(x),
    "expand": lambda a, x: x.unsqueeze(1).expand(-1, a["extent"][0], -1),
    "sum_over": lambda a, x: x.sum(1),
    "concat": lambda a, *x: torch.cat(x, a.get("dim", 0)),
    "slice": slice_,
    "slice_dx": slice_dx,
    "softmax_xent": softmax_xent,
    "embedding": lambda a, table, ids: F.embedding(ids.long(), table),
    "bias": lambda a, x, b: x + b,
    "layer_norm": layer_norm,
    "gelu": lambda a, x: F.gelu(x),
    "sigmoid": lambda a, x: torch.sigmoid(x),
    "tanh": lambda a, x: torch.tanh(x),
    "blend": lambda a, t, x, y: t * x + (1 - t) * y,
    "matmul": matmul,
    "transpose": lambda a, x: x.transpose(1, 2),
    "softmax": softmax,
    "additive_scores": additive_scores,
    "lstm": lstm,
    "mean_square": lambda a, x, y: F.mse_loss(x, y),
    "sigmoid_xent": lambda a, x, y: F.binary_cross_entropy_with_logits(x, y),
}


def interpret(graph, values, masks):
    """Runs a graph's forward ops and returns its loss.

    values holds what is there before the first op, by storage; running statistics are updated in place. masks holds what each
    dropout multiplies with, by op.
    """
    storages, tensors = graph["storages"], graph["tensors"]
    made = {}  # flat contents by storage and version

    def get(t):
        t = tensors[t]
        s, shape = t["storage"], t["shape"]
        flat = made[s, t["version"]] if (s, t["version"]) in made else values[s].reshape(-1)
        begin, count = t.get("offset", 0) // 4, 1
        for extent in shape:
            count *= extent
        return flat[begin:begin + count].reshape(shape)

    normalised = {}  # what statistics are of, by the storage of the mean
    for op in graph["ops"]:
        if op["phase"] != "forward":
            continue
        kind, attrs, inputs = op["kind"], op.get("attrs", {}), [get(t) for t in op["inputs"]]
        if kind == "batch_norm_update":
            x = normalised[tensors[op["inputs"][0]]["storage"]].detach()
            F.batch_norm(x, inputs[2], inputs[3], None, None, True, attrs["momentum"], 1e-5)
            continue
        if kind == "dropout":
            outputs = inputs[0] * masks[op["id"]].reshape(inputs[0].shape)
        else:
            outputs = ops[kind](attrs, *inputs)
        if not isinstance(outputs, tuple):
            outputs = (outputs,)
        if kind == "batch_norm_stats":
            normalised[tensors[op["outputs"][0]]["storage"]] = inputs[0]
        for t, y in zip(op["outputs"], outputs):
            if y is not None:
                assert list(y.reshape(tensors[t]["shape"]).shape) == tensors[t]["shape"]
                made[tensors[t]["storage"], tensors[t]["version"]] = y.reshape(-1)
    loss = next(s["id"] for s in storages if s["role"] == "output")
    return made[loss, 0].reshape(())
