"""Networks written by hand from torch's modules, with the weights of a graph. Each takes a Given and returns the loss.

Their structure is that of torch's documentation, torchvision's residual blocks, and the papers that docs/models.md names.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.stateless import functional_call


class Given:
    """Storages of a graph by name, and what each dropout multiplies with by the name of its op."""

    def __init__(self, tensors, masks):
        self.tensors, self.masks = tensors, masks

    def __getitem__(self, name):
        return self.tensors[name]

    def __contains__(self, name):
        return name in self.tensors

    def ids(self, name):
        return self[name].long()

    def drop(self, name, x):
        return x * self.masks[name].reshape(x.shape)

    def linear(self, name, x):
        return F.linear(x, self[name + ".w"], self.tensors.get(name + ".b"))

    def layer_norm(self, name, x, epsilon):
        return F.layer_norm(x, x.shape[-1:], self[name + ".gamma"], self[name + ".beta"], epsilon)


def put(module, **tensors):
    for name, tensor in tensors.items():
        setattr(module, name, tensor)
    return module.train()


def labels(x):
    return torch.where(x < 0, torch.full_like(x, -100), x).long().reshape(-1)


# Residual networks

def conv(given, name, x, stride, padding):
    w = given[name + ".w"]
    return put(nn.Conv2d(w.shape[1], w.shape[0], w.shape[2:], stride, padding, bias=False), weight=w)(x)


def batch_norm(given, name, x, module=nn.BatchNorm2d):
    return put(module(x.shape[1]), weight=given[name + ".gamma"], bias=given[name + ".beta"],
               running_mean=given[name + ".running_mean"], running_var=given[name + ".running_variance"])(x)


def basic_block(given, name, x, stride):
    y = F.relu(batch_norm(given, name + ".bn1", conv(given, name + ".conv1", x, stride, 1)))
    return batch_norm(given, name + ".bn2", conv(given, name + ".conv2", y, 1, 1))


def bottleneck(given, name, x, stride):
    y = F.relu(batch_norm(given, name + ".bn1", conv(given, name + ".conv1", x, 1, 0)))
    y = F.relu(batch_norm(given, name + ".bn2", conv(given, name + ".conv2", y, stride, 1)))
    return batch_norm(given, name + ".bn3", conv(given, name + ".conv3", y, 1, 0))


def resnet(given):
    x = F.relu(batch_norm(given, "conv1.bn", conv(given, "conv1", given["input"], 2, 3)))
    x = nn.MaxPool2d(3, 2, 1)(x)
    for stage in range(1, 5):
        block = 1
        while "stage%d.block%d.conv1.w" % (stage, block) in given:
            name = "stage%d.block%d" % (stage, block)
            stride = 2 if stage > 1 and block == 1 else 1
            y = (bottleneck if name + ".conv3.w" in given else basic_block)(given, name, x, stride)
            if name + ".down.w" in given:
                x = batch_norm(given, name + ".down.bn", conv(given, name + ".down", x, stride, 0))
            x = F.relu(y + x)
            block += 1
    x = given.linear("fc", nn.AdaptiveAvgPool2d(1)(x).flatten(1))
    return F.cross_entropy(x, labels(given["labels"]))


# Transformers

def encoder_layers(given, x, heads, epsilon, norm_first, mask=None):
    width, i = x.shape[2], 1
    while "layer%d.norm1.gamma" % i in given:
        at = lambda name: given["layer%d.%s" % (i, name)]
        joined = lambda suffix: torch.cat([at("attention.%s.%s" % (part, suffix)) for part in "qkv"])
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0, "gelu", epsilon, True, norm_first, dtype=x.dtype).train()
        x = functional_call(layer, {
            "self_attn.in_proj_weight": joined("w"), "self_attn.in_proj_bias": joined("b"),
            "self_attn.out_proj.weight": at("attention.out.w"), "self_attn.out_proj.bias": at("attention.out.b"),
            "linear1.weight": at("mlp.in.w"), "linear1.bias": at("mlp.in.b"),
            "linear2.weight": at("mlp.out.w"), "linear2.bias": at("mlp.out.b"),
            "norm1.weight": at("norm1.gamma"), "norm1.bias": at("norm1.beta"),
            "norm2.weight": at("norm2.gamma"), "norm2.bias": at("norm2.beta"),
        }, (x, mask))
        i += 1
    return x


def placed(given, x):
    return x + given["positions"][:x.shape[1]]


def gpt(given):
    table, tokens = given["words"], given.ids("tokens")
    steps = tokens.shape[1]
    mask = torch.full((steps, steps), float("-inf"), dtype=table.dtype).triu(1)
    x = encoder_layers(given, placed(given, F.embedding(tokens, table)), 2, 1e-5, True, mask)
    return F.cross_entropy(F.linear(given.layer_norm("norm", x, 1e-5), table).flatten(0, 1), labels(given["next"]))


def bert(given):
    table = given["words"]
    x = placed(given, F.embedding(given.ids("tokens"), table) + F.embedding(given.ids("types"), given["sentences"]))
    x = encoder_layers(given, given.layer_norm("embedding.norm", x, 1e-12), 2, 1e-12, False)
    pair = given.linear("head.pair", torch.tanh(given.linear("pooler", x[:, 0])))
    y = given.layer_norm("head.norm", F.gelu(given.linear("head.transform", x)), 1e-12)
    words = F.cross_entropy(F.linear(y, table, given["head.b"]).flatten(0, 1), labels(given["hidden"]))
    return words + F.cross_entropy(pair, labels(given["follows"]))


# Recurrent networks

def lstm(given, x, *names):
    """nn.LSTM over all steps; with two names in both directions."""
    suffixes, width = ["l0", "l0_reverse"], given[names[0] + ".before.w"].shape[1]
    module = nn.LSTM(x.shape[2], width, batch_first=True, bidirectional=len(names) == 2)
    for suffix, name in zip(suffixes, names):
        put(module, **{"weight_ih_" + suffix: given[name + ".below.w"], "weight_hh_" + suffix: given[name + ".before.w"],
                       "bias_ih_" + suffix: given[name + ".below.b"], "bias_hh_" + suffix: given[name + ".before.b"]})
    return module(x)[0]


def gnmt(given):
    memory = F.embedding(given.ids("source"), given["encoder.words"])
    memory = lstm(given, memory, "encoder1.forward", "encoder1.backward")
    layer = 2
    while "encoder%d.before.w" % layer in given:
        name = "encoder%d" % layer
        y = lstm(given, given.drop(name + ".dropout", memory), name)
        memory = y + memory if layer > 2 else y
        layer += 1

    x = lstm(given, F.embedding(given.ids("target"), given["decoder.words"]), "decoder1")
    q, k = given.linear("attention.query", x), given.linear("attention.key", memory)
    scores = torch.tanh(q[:, :, None] + k[:, None]) @ given["attention.v"]
    seen = F.softmax(scores, 2) @ memory
    for layer in range(2, layer):
        name = "decoder%d" % layer
        y = lstm(given, torch.cat([given.drop(name + ".dropout", x), seen], 2), name)
        x = y + x if layer > 2 else y
    return F.cross_entropy(given.linear("head", x).flatten(0, 1), labels(given["next"]))


def rhn(given):
    table, tokens = given["words"], given.ids("tokens")
    x = given.drop("embedding.dropout", F.embedding(tokens, table))
    state, states = x.new_zeros(x.shape[0], x.shape[2]), []
    for step in range(x.shape[1]):
        layer = 1
        while "layer%d.gate.w" % layer in given:
            candidate, gate = (given.linear("layer%d.%s" % (layer, part), state) for part in ("candidate", "gate"))
            if layer == 1:
                candidate, gate = candidate + given.linear("below.candidate", x[:, step]), gate + given.linear("below.gate", x[:, step])
            gate = torch.sigmoid(gate)
            state = gate * torch.tanh(candidate) + (1 - gate) * state
            layer += 1
        states.append(state)
    y = given.drop("states.dropout", torch.stack(states, 1))
    return F.cross_entropy(F.linear(y, table, given["head.b"]).flatten(0, 1), labels(given["next"]))


def convolve(given, name, x):
    x = F.conv1d(x, given[name + ".w"].squeeze(2), given[name + ".b"], padding=2)
    return batch_norm(given, name + ".bn", x, nn.BatchNorm1d)


def tacotron(given):
    x, i = F.embedding(given.ids("tokens"), given["characters"]).transpose(1, 2), 1
    while "encoder.conv%d.w" % i in given:
        name = "encoder.conv%d" % i
        x = given.drop(name + ".dropout", F.relu(convolve(given, name, x)))
        i += 1
    memory = lstm(given, x.transpose(1, 2), "encoder.forward", "encoder.backward")
    width, keys = memory.shape[2], given.linear("attention.keys", memory)

    past = given["previous"]
    for name in ("prenet1", "prenet2"):
        past = given.drop(name + ".dropout", F.relu(given.linear(name, past)))
    zeros = lambda *shape: memory.new_zeros(memory.shape[0], *shape)
    h, c, said, said_c = zeros(2 * width), zeros(2 * width), zeros(2 * width), zeros(2 * width)
    context, places, total = zeros(width), zeros(memory.shape[1]), zeros(memory.shape[1])
    # A cell of the reference reads the past and the context; here the context's weights lie beside those of h.
    before = given["listen.before.w"]
    listen = (torch.cat([given["listen.below.w"], before[:, :width]], 1), before[:, width:], given["listen.below.b"], given["listen.before.b"])
    say = (given["say.below.w"], given["say.before.w"], given["say.below.b"], given["say.before.b"])
    rows = []
    for step in range(past.shape[1]):
        name = "step%d" % (step + 1)
        h, c = torch.lstm_cell(torch.cat([past[:, step], context], 1), (h, c), *listen)
        h = given.drop(name + ".listen.dropout", h)
        looked = F.conv1d(torch.stack([places, total], 1), given["attention.filters.w"].squeeze(2), padding=15)
        located = F.linear(looked.transpose(1, 2), given["attention.places.w"])
        q = F.linear(h, given["attention.query.w"])
        places = F.softmax(torch.tanh(q[:, None] + keys + located) @ given["attention.v"], 1)
        total = total + places
        context = (places[:, None] @ memory)[:, 0]
        said, said_c = torch.lstm_cell(torch.cat([h, context], 1), (said, said_c), *say)
        said = given.drop(name + ".say.dropout", said)
        rows.append(torch.cat([said, context], 1))
    y = torch.stack(rows, 1)
    mel, x = given.linear("projection", y), given.linear("projection", y).transpose(1, 2)
    for i in range(1, 6):
        name = "postnet.conv%d" % i
        x = convolve(given, name, x)
        x = given.drop(name + ".dropout", torch.tanh(x) if i < 5 else x)
    frames = given["frames"]
    stop = F.binary_cross_entropy_with_logits(given.linear("stop", y).reshape(-1), given["stop"].reshape(-1))
    return F.mse_loss(mel, frames) + F.mse_loss(mel + x.transpose(1, 2), frames) + stop
