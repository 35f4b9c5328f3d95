# torch_step.py: the time of a training step in PyTorch, eager, float32 without TF32, Adam, for tensile's step beside it.
import time

import torch
import torchvision

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
print("torch", torch.__version__)
for name in ("resnet50", "vgg16"):
    model = getattr(torchvision.models, name)().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    images = torch.randn(16, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (16,), device="cuda")
    took = []
    for _ in range(20):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begin)
    peak = torch.cuda.max_memory_allocated()
    print(f"{name} {1000 * sorted(took[5:])[7]:.2f} ms a step, {peak} bytes")
    del model, optimizer
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
