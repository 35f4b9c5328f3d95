"""Measures what Tensile costs a PyTorch script: user and system CPU time of blocks of iterations that alternate between two
processes which train the same, one alone and one joined.

    python torch_blocks.py TENSILE NET [MEMORY] [BLOCKS] [ITERATIONS]

NET is llama, bert, bert-lengths (dynamic padding), gpt2 or vit, of transformers, or resnet50; MEMORY is a limit such as 60% ("none": no limit, the
default); a block has ITERATIONS (10) iterations of each process, and there are 40 BLOCKS after one that is left out. It prints
the ratio of the medians, the mean of the blocks' ratios with its 95 % interval, and whether both have the same losses. Nothing
else should run meanwhile, though each block has both.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys


def network(name, torch):
    """Returns the model, and a function from the number of an iteration to its loss."""
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(1)
    if name == "resnet50":
        from torch_resnet import resnet50
        model = resnet50()
        return model, lambda i: torch.nn.functional.cross_entropy(
            model(torch.randn(16, 3, 96, 96, generator=rng)), torch.randint(0, 1000, (16,), generator=rng))
    import transformers as t
    if name == "vit":
        model = t.ViTForImageClassification(t.ViTConfig(hidden_size=384, num_hidden_layers=12, num_attention_heads=6,
                                                        intermediate_size=1536, image_size=96, num_labels=100))
        return model, lambda i: model(pixel_values=torch.randn(8, 3, 96, 96, generator=rng),
                                      labels=torch.randint(0, 100, (8,), generator=rng)).loss
    if name == "gpt2":
        model = t.GPT2LMHeadModel(t.GPT2Config(vocab_size=1000, n_positions=128, n_embd=384, n_layer=6, n_head=6))
    elif name == "llama":
        model = t.LlamaForCausalLM(t.LlamaConfig(vocab_size=1000, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
                                                 num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=64))
    else:
        model = t.BertForSequenceClassification(t.BertConfig(vocab_size=1000, hidden_size=256, intermediate_size=1024,
                                                             num_hidden_layers=4, num_attention_heads=4))

    def loss(i):
        if name == "gpt2":
            ids = torch.randint(0, 1000, (4, 128), generator=rng)
            return model(input_ids=ids, labels=ids).loss
        n = 64 if name != "bert-lengths" else int(torch.randint(16, 65, (), generator=rng))
        ids = torch.randint(0, 1000, (2, n), generator=rng)
        if name == "llama":
            return model(input_ids=ids, labels=ids).loss
        return model(input_ids=ids, labels=torch.randint(0, 2, (2,), generator=rng)).loss
    return model, loss


def child(name):
    """Trains as many iterations as each line of stdin says, and prints CPU seconds and losses."""
    import torch
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model, loss = network(name, torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    if os.environ.get("JOINS"):
        import tensile
        tensile.join(model, optimizer)
    done = 0
    print("ready", flush=True)
    for line in sys.stdin:
        begun, losses = resource.getrusage(resource.RUSAGE_SELF), []
        for _ in range(int(line)):
            optimizer.zero_grad()
            out = loss(done)
            out.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(out.item())
            done += 1
        end = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps([end.ru_utime + end.ru_stime - begun.ru_utime - begun.ru_stime, losses]), flush=True)


class Process:
    def __init__(self, command, **env):
        env = dict(os.environ, PYTHONPATH=os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"), **env)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        if self.process.stdout.readline().strip() != "ready":
            sys.exit(f"{command}: it did not begin")

    def block(self, iterations):
        self.process.stdin.write(f"{iterations}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    tensile, name, memory, blocks, iterations = (sys.argv[1:] + ["none", "40", "10"][len(sys.argv) - 3:])[:5]
    blocks, iterations = int(blocks), int(iterations)
    script = [sys.executable, os.path.abspath(__file__), "child", name]
    report = f"/tmp/torch_blocks.{os.getpid()}.json"
    joined = Process([tensile, "join", "--report", report, *(["--memory", memory] if memory != "none" else []), "--", *script],
                     JOINS="1")
    alone = Process(script)
    both, ratios = [], []
    for n in range(blocks + 1):
        order = (alone, joined) if n % 2 else (joined, alone)
        seconds = {p: p.block(30 if n == 0 else iterations) for p in order}  # the first: recording and planning
        if seconds[alone][1] != seconds[joined][1]:
            sys.exit(f"block {n}: the losses differ")
        if n:
            both.append((seconds[alone][0], seconds[joined][0]))
            ratios.append(seconds[joined][0] / seconds[alone][0])
    for p in (alone, joined):
        p.close()
    with open(report) as f:
        told = json.load(f)
    os.remove(report)
    mean, half = statistics.mean(ratios), 1.96 * statistics.stdev(ratios) / math.sqrt(len(ratios))
    medians = [statistics.median(x) * 1000 / iterations for x in zip(*both)]
    print(f"{name}, memory {memory}: {len(ratios)} blocks of {iterations}: mean ratio {mean:.3f}, 95 % {mean - half:.3f} to "
          f"{mean + half:.3f}; ratio of medians {medians[1] / medians[0]:.3f} ({medians[0]:.1f} ms and {medians[1]:.1f} ms of CPU an "
          f"iteration); the same losses; report: {json.dumps(told)[:600]}")


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(sys.argv[2])
    else:
        main()
