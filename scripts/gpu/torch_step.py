"""torch_step.py: PyTorch's training step beside tensile's: ResNet-50 (batch 16 and 64) and a GPT-2 small of 8 x 1024 tokens, with Adam, in
float32 without TF32, with it, under autocast to bfloat16 (channels_last), and compiled: the median of 50 steps by events, without a
synchronization between them, and the most memory."""

import statistics
import sys
import time

import torch_kit

torch, device = torch_kit.torch_here()
STEPS = 2 if torch_kit.FAKE else 50


def step(what):
    name, batch, setting = what.split()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = setting in ("tf32", "compiled")
    model, make = torch_kit.network(torch, device, name, int(batch[1:]), torch_kit.FAKE)
    x, y = (t.to(device) for t in make())
    if setting == "bf16" and name == "resnet50":
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters())
    forward = torch.compile(model, **torch_kit.COMPILE) if setting == "compiled" else model

    def once():
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=setting == "bf16"):
            loss = torch.nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
    once()
    end = time.monotonic() + (0 if torch_kit.FAKE else 0.7)
    while time.monotonic() < end:
        once()
        torch_kit.synchronize(torch, device)
    marks = []
    for i in range(STEPS + 1):
        if i:
            once()
        if device == "cuda":
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
        else:
            marks.append(time.perf_counter())
    torch_kit.synchronize(torch, device)
    took = (a.elapsed_time(b) if device == "cuda" else 1000 * (b - a) for a, b in zip(marks, marks[1:]))
    return f"{statistics.median(took):.2f} ms" + torch_kit.memory(torch, device)


torch_kit.row(f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
settings = "fp32", "tf32", "bf16", "compiled"  # what compiles comes last: it may take all the time
names = [f"{net} {setting}" for setting in settings for net in ("resnet50 b16", "resnet50 b64", "gpt2 b8")]
sys.exit(1 if torch_kit.each(torch, device, names, step) else 0)
