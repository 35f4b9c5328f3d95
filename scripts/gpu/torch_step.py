"""torch_step.py: PyTorch's training step beside tensile's: ResNet-50 (batch 16 and 64) and a GPT-2 small of 8 x 1024 tokens, with Adam, in
float32 without TF32, with it, under autocast to bfloat16 (channels_last), and compiled: the median of 50 steps by events, without a
synchronization between them, and the most memory."""

import statistics
import sys
import time


def gpt2(torch):
    """GPT-2 small: 12 layers of 768, 12 heads, 50257 tokens, causal attention."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(768), nn.LayerNorm(768)
            self.qkv, self.out = nn.Linear(768, 2304), nn.Linear(768, 768)
            self.up, self.down = nn.Linear(768, 3072), nn.Linear(3072, 768)

        def forward(self, x):
            b, s, _ = x.shape
            q, k, v = (t.view(b, s, 12, 64).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, s, 768))
            return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(12))), nn.LayerNorm(768)

        def forward(self, x):
            h = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
            return F.linear(self.norm(self.blocks(h)), self.tokens.weight).flatten(0, 1)
    return Model()


def main():
    try:
        import torch
    except ImportError as e:
        print(e)
        sys.exit(77)
    if not torch.cuda.is_available():
        print("this torch sees no GPU")
        sys.exit(77)
    failed = 0
    print("@ torch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
    for setting in "fp32", "tf32", "bf16", "compiled":  # what compiles comes last: it may take all the time
        for name, batch in ("resnet50", 16), ("resnet50", 64), ("gpt2", 8):
            try:
                print(f"@ {name} b{batch} {setting}: " + step(torch, name, batch, setting), flush=True)
            except Exception as e:  # the others are wanted all the same
                failed += 1
                print(f"@ {name} b{batch} {setting}: {type(e).__name__}: {str(e)[:90]}", flush=True)
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    sys.exit(1 if failed else 0)


def step(torch, name, batch, setting):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = setting in ("tf32", "compiled")
    if name == "gpt2":
        model = gpt2(torch).cuda()
        x = torch.randint(0, 50257, (batch, 1024), device="cuda")
        y = x.flatten().roll(-1)
    else:
        import torchvision
        model = torchvision.models.resnet50().cuda()
        x, y = torch.randn(batch, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda")
        if setting == "bf16":
            model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters())
    forward = torch.compile(model) if setting == "compiled" else model

    def once():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=setting == "bf16"):
            loss = torch.nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
    end = time.monotonic() + 0.7
    once()
    while time.monotonic() < end:
        once()
        torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(51)]
    for i, mark in enumerate(marks):
        if i:
            once()
        mark.record()
    torch.cuda.synchronize()
    took = statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:]))
    return f"{took:.2f} ms, {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB"


if __name__ == "__main__":
    main()
