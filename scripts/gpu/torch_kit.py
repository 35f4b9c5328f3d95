"""What the parts with PyTorch share: a torch on a GPU, or one on the CPU where the check is rehearsed (GPU_CHECK_FAKE); networks in plain
torch, small in a rehearsal; and what a script that trains prints."""

import contextlib
import hashlib
import json
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.dirname(HERE))  # torch_resnet is beside this file in the archive, and there in the repository
FAKE = bool(os.environ.get("GPU_CHECK_FAKE"))
END = time.monotonic() + float(os.environ.get("GPU_CHECK_LIMIT", "inf"))  # of the part, before torch is there
SKIPPED = 77  # the exit status of what this machine lacks
COMPILE = {"backend": "aot_eager"} if FAKE else {}  # a rehearsal compiles no C++


def row(text):
    """Prints a row: check.py knows rows of its table by their @."""
    print("@ " * ("GPU_CHECK_PART" in os.environ) + text, flush=True)


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def torch_here(device=None):
    """Returns torch and the device: "cuda", or in a rehearsal "cpu". Where that is not there, the part is skipped."""
    try:
        import torch
    except ImportError as e:
        skip(f"{sys.executable} has no torch: {e}")
    device = device or ("cpu" if FAKE else "cuda")
    if device == "cuda" and not torch.cuda.is_available():
        skip("this torch sees no GPU")
    if device == "cpu":
        torch.set_num_threads(1)  # others may use the machine
    return torch, device


def synchronize(torch, device):
    if device == "cuda":
        torch.cuda.synchronize()


def memory(torch, device):
    return f", {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB" if device == "cuda" else ""


def each(torch, device, names, step):
    """Prints a row for each, what step says of it, and returns how many failed: the others are wanted all the same. None is begun in the
    last third of the part's time."""
    failed, end = 0, END - float(os.environ.get("GPU_CHECK_LIMIT", 0)) / 3
    for name in names:
        try:
            row(f"{name}: " + (step(name) if time.monotonic() < end else "no time was left"))
        except Exception as e:
            failed += 1
            traceback.print_exc()
            row(f"{name}: {type(e).__name__}: {str(e)[:90]}")
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    return failed


def network(torch, device, name, batch=None, small=False):
    """Returns a network, and a function that makes a batch and its targets on the host: resnet50 (64 images of 224), gpt2 (GPT-2 small, 8 x
    1024 tokens) or vit (ViT-B/16, 64 images of 224)."""
    side, text = (32, 64) if small else (224, 1024)
    batch = batch or (8 if small else {"resnet50": 64, "gpt2": 8, "vit": 64}[name])
    with torch.device(device) if device == "cuda" else contextlib.nullcontext():  # to make it there is seconds faster
        return made(torch, name, batch, small, side, text)


def made(torch, name, batch, small, side, text):
    if name == "gpt2":
        size = dict(tokens=512, width=64, heads=2, depth=2, text=text) if small else dict(text=text)
        model = transformer(torch, **size)
        most = size.get("tokens", 50257)

        def sentences():
            x = torch.randint(0, most, (batch, text))
            return x, x.flatten().roll(-1)
        return model, sentences
    if name == "vit":
        model = transformer(torch, **(dict(width=64, heads=2, depth=2, patch=4, side=side) if small else dict(patch=16, side=side)))
    else:
        from torch_resnet import resnet50
        model = resnet50(16, (1, 1, 1, 1)) if small else resnet50()
    return model, lambda: (torch.randn(batch, 3, side, side), torch.randint(0, 1000, (batch,)))


def transformer(torch, tokens=50257, width=768, heads=12, depth=12, text=1024, patch=0, side=224):
    """A GPT-2 small of causal attention whose output is its embedding's, or, with patches of images, a ViT-B with 1000 classes."""
    nn, F = torch.nn, torch.nn.functional

    def attention(q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=not patch)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # torch 1.13
        if not patch:
            scores = scores + torch.full(scores.shape[-2:], float("-inf"), device=q.device).triu(1)
        return scores.softmax(-1) @ v

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, s, _ = x.shape
            q, k, v = (t.view(b, s, heads, width // heads).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
            x = x + self.out(attention(q, k, v).transpose(1, 2).reshape(b, s, width))
            return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(depth))), nn.LayerNorm(width)
            if patch:
                self.cut, self.head = nn.Conv2d(3, width, patch, patch), nn.Linear(width, 1000)
                self.first = nn.Parameter(torch.zeros(1, 1, width))
                self.places = nn.Parameter(0.02 * torch.randn(1, (side // patch) ** 2 + 1, width))
            else:
                self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(text, width)

        def forward(self, x):
            if patch:
                h = self.cut(x).flatten(2).transpose(1, 2)
                h = torch.cat([self.first.expand(len(h), -1, -1), h], 1) + self.places
                return self.head(self.norm(self.blocks(h))[:, 0])
            h = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
            return F.linear(self.norm(self.blocks(h)), self.tokens.weight).flatten(0, 1)
    return Model()


def adam(torch, model, how="default"):
    """Adam as PyTorch makes it, with fused=True, or with foreach=False."""
    more = {"default": {}, "fused": {"fused": True}, "foreach=False": {"foreach": False}}[how]
    try:
        return torch.optim.Adam(model.parameters(), **more)
    except RuntimeError as e:
        if how == "fused" and "fused" in str(e).lower():
            skip(f"Adam of torch {torch.__version__} is not fused on this device")
        raise


def deterministic(torch):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.use_deterministic_algorithms(True)
    if hasattr(torch.utils, "deterministic"):
        torch.utils.deterministic.fill_uninitialized_memory = False  # it would cost a pass over each tensor
    torch.manual_seed(1)


def train(torch, device, model, optimizer, iteration, count, ops=1):
    """Trains for so many iterations, which return their loss, joined if a sidecar has started this script; and prints as JSON the digest of all
    bits that came out, milliseconds of an iteration, by the median of its second half, and what torch's allocator has to say."""
    joined = "TENSILE_SOCKET" in os.environ
    if joined:
        import tensile

        tensile.join(model, optimizer)
    losses, times, waited = [], [], False
    for i in range(count):
        begun = time.perf_counter()
        losses.append(iteration(i))
        times.append(time.perf_counter() - begun)
        session = joined and tensile._session
        if session and session.graphs and not waited:  # how many iterations follow a plan is not for the speed of this machine to say
            waited = True
            while session.planner.sock and not (session.planner.newest and session.planner.newest["graph"]):
                session.planner._read(60)
    got = {"ms": 1000 * sorted(times[count // 2:])[(count - count // 2) // 2], "ops": ops}
    if device == "cuda":
        stats = torch.cuda.memory_stats()
        got.update(allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.memory_reserved(),
                   retries=stats["num_alloc_retries"], ooms=stats["num_ooms"])
    bits = hashlib.sha256(repr(losses).encode())
    state = [s[k] for s in optimizer.state.values() for k in sorted(s)]
    for v in [*model.state_dict().values(), *state]:
        bits.update(v.detach().cpu().numpy().tobytes() if torch.is_tensor(v) else repr(v).encode())
    got["bits"] = bits.hexdigest()
    print(json.dumps(got))
