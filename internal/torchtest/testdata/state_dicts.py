# Makes networks whose parameters are called as torchvision and transformers call them, saves the state_dict of each as
# DIR/NAME.pt, and what it makes of some inputs as DIR/NAME.io.pt. Where Tensile departs from the published network, as
# in gpt2's gelu, this one departs too: what is compared are names, layouts and connections.
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, width, stride, deep):
        super().__init__()
        out = 4 * width if deep else width
        sizes = [(channels, width, 1), (width, width, 3), (width, out, 1)] if deep else \
            [(channels, width, 3), (width, out, 3)]
        self.count = len(sizes)
        for i, (a, b, kernel) in enumerate(sizes, 1):
            step = stride if i == (2 if deep else 1) else 1
            self.add_module(f"conv{i}", nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False))
            self.add_module(f"bn{i}", nn.BatchNorm2d(b))
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.out = out

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = F.relu(y)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, blocks, deep, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for i, count in enumerate(blocks, 1):
            layers = []
            for k in range(count):
                layers.append(Block(channels, 32 << i, 2 if i > 1 and k == 0 else 1, deep))
                channels = layers[-1].out
            self.add_module(f"layer{i}", nn.Sequential(*layers))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Conv1D(nn.Module):
    def __init__(self, ins, outs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(0.2 * torch.randn(ins, outs)), nn.Parameter(0.2 * torch.randn(outs))

    def forward(self, x):
        return x @ self.weight + self.bias


def module(**parts):
    m = nn.Module()
    for name, part in parts.items():
        m.add_module(name, part)
    return m


def attend(q, k, v, heads, causal):
    split = lambda x: x.view(*x.shape[:2], heads, -1).transpose(1, 2)
    q, k, v = split(q), split(k), split(v)
    scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class GPT2(nn.Module):
    def __init__(self, layers, width, heads, vocabulary):
        super().__init__()
        self.heads = heads
        blocks = []
        for _ in range(layers):
            attn = module(c_attn=Conv1D(width, 3 * width), c_proj=Conv1D(width, width))
            attn.register_buffer("bias", torch.ones(1, 1, 4, 4).tril().byte())
            attn.register_buffer("masked_bias", torch.tensor(-1e4))
            blocks.append(module(ln_1=nn.LayerNorm(width), attn=attn, ln_2=nn.LayerNorm(width),
                                 mlp=module(c_fc=Conv1D(width, 4 * width), c_proj=Conv1D(4 * width, width))))
        self.transformer = module(wte=nn.Embedding(vocabulary, width), wpe=nn.Embedding(1024, width),
                                  h=nn.ModuleList(blocks), ln_f=nn.LayerNorm(width))
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens, next):
        t = self.transformer
        x = t.wte(tokens) + t.wpe.weight[:tokens.shape[1]]
        for b in t.h:
            q, k, v = b.attn.c_attn(b.ln_1(x)).chunk(3, -1)
            x = x + b.attn.c_proj(attend(q, k, v, self.heads, True))
            x = x + b.mlp.c_proj(F.gelu(b.mlp.c_fc(b.ln_2(x))))
        return F.cross_entropy(self.lm_head(t.ln_f(x)).flatten(0, 1), next.flatten())


class Bert(nn.Module):
    def __init__(self, layers, width, heads, vocabulary):
        super().__init__()
        self.heads = heads
        linear = lambda a=width, b=width: nn.Linear(a, b)
        norm = lambda: nn.LayerNorm(width, eps=1e-12)
        all = []
        for _ in range(layers):
            attention = module(output=module(dense=linear(), LayerNorm=norm()))
            attention.add_module("self", module(query=linear(), key=linear(), value=linear()))
            all.append(module(attention=attention, intermediate=module(dense=linear(width, 4 * width)),
                              output=module(dense=linear(4 * width, width), LayerNorm=norm())))
        embeddings = module(word_embeddings=nn.Embedding(vocabulary, width), LayerNorm=norm(),
                            position_embeddings=nn.Embedding(512, width), token_type_embeddings=nn.Embedding(2, width))
        embeddings.register_buffer("position_ids", torch.arange(512)[None])
        self.bert = module(embeddings=embeddings, encoder=module(layer=nn.ModuleList(all)),
                           pooler=module(dense=linear()))
        predictions = module(transform=module(dense=linear(), LayerNorm=norm()), decoder=nn.Linear(width, vocabulary))
        predictions.bias = nn.Parameter(torch.randn(vocabulary))
        predictions.decoder.weight, predictions.decoder.bias = embeddings.word_embeddings.weight, predictions.bias
        self.cls = module(predictions=predictions, seq_relationship=linear(width, 2))

    def forward(self, tokens, types, hidden, follows):
        e, p = self.bert.embeddings, self.cls.predictions
        x = e.word_embeddings(tokens) + e.token_type_embeddings(types) + e.position_embeddings.weight[:tokens.shape[1]]
        x = e.LayerNorm(x)
        for b in self.bert.encoder.layer:
            s = getattr(b.attention, "self")
            y = attend(s.query(x), s.key(x), s.value(x), self.heads, False)
            x = b.attention.output.LayerNorm(x + b.attention.output.dense(y))
            x = b.output.LayerNorm(x + b.output.dense(F.gelu(b.intermediate.dense(x))))
        pair = self.cls.seq_relationship(torch.tanh(self.bert.pooler.dense(x[:, 0])))
        words = p.decoder(p.transform.LayerNorm(F.gelu(p.transform.dense(x))))
        return F.cross_entropy(words.flatten(0, 1), hidden.flatten(), ignore_index=-1) + F.cross_entropy(pair, follows)


def save(folder, name, network, **inputs):
    for m in network.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.running_mean, 0, 0.2)
            nn.init.uniform_(m.running_var, 0.5, 2)
        if isinstance(m, (nn.BatchNorm2d, nn.LayerNorm)):
            nn.init.normal_(m.weight, 1, 0.2)
            nn.init.normal_(m.bias, 0, 0.2)
    network.eval()
    with torch.no_grad():
        out = network(*inputs.values())
    torch.save(network.state_dict(), f"{folder}/{name}.pt")
    torch.save({"out": out, **{k: v.float() for k, v in inputs.items()}}, f"{folder}/{name}.io.pt")


torch.manual_seed(1)
folder = sys.argv[1]
ids = lambda n, *shape: torch.randint(0, n, shape)
save(folder, "resnet18", ResNet([2, 2, 2, 2], False, 7), input=torch.randn(2, 3, 40, 40))
save(folder, "resnet:1,2,1,1", ResNet([1, 2, 1, 1], True, 7), input=torch.randn(2, 3, 40, 40))
save(folder, "gpt:2,16,2", GPT2(2, 16, 2, 50), tokens=ids(50, 3, 6), next=ids(50, 3, 6))
save(folder, "bert:2,16,2", Bert(2, 16, 2, 50), tokens=ids(50, 3, 6), types=ids(2, 3, 6), hidden=ids(51, 3, 6) - 1,
     follows=ids(2, 3))
