# Writes what TestTorch reads: python3 make.py FOLDER. Some of it is kept beside this file.
import argparse, collections, datetime, pathlib, sys
import numpy, torch, torch.distributed.checkpoint

folder = sys.argv[1] + "/"


def save(name, what, **how):
    torch.save(what, folder + name, **how)


def ramp(*shape, dtype=torch.float32):
    n = 1
    for e in shape:
        n *= e
    return (torch.arange(n, dtype=torch.float64) / 8 - 1).reshape(shape).to(dtype)


small = collections.OrderedDict()
small["whole"] = ramp(2, 3)
small["transposed"] = ramp(2, 3).t()
small["rows"] = ramp(4, 3)[1:3]
small["columns"] = ramp(4, 3)[:, 1:]
small["repeated"] = ramp(1, 3).expand(2, 3).clone()
small["tied"] = small["whole"]
small["scalar"] = ramp(1).reshape(())
small["none"] = ramp(0, 2)
small["parameter"] = torch.nn.Parameter(ramp(3))
small["double"] = ramp(3, dtype=torch.float64) + 2.0**-40
small["half"] = torch.tensor([1.5, -2.0**-24, 65504.0, float("inf"), -0.0], dtype=torch.float16)
small["brain"] = torch.tensor([1.5, -3.0, float("-inf")], dtype=torch.bfloat16)
small["count"] = torch.tensor(7)
save("small.pt", small)
save("old.pt", {"a": ramp(1)}, _use_new_zipfile_serialization=False)
save("checkpoint.pt", {"epoch": 70000, "lr": 0.5, "best": None, "steps": [1, 2 ** 40, -1], "model_state_dict": small})
save("module.pt", torch.nn.Linear(2, 1))
save("number.pt", 7)
save("expanded.pt", {"a": ramp(1).expand(1000)})
save("batchnorm.pt", torch.nn.BatchNorm2d(2).state_dict())
model, seen = torch.nn.Linear(2, 1), collections.defaultdict(int, {"a": 1})
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
beside = {"epoch": 3, "best_acc1": torch.tensor(3.0), "args": argparse.Namespace(lr=0.1, betas=(0.9, 0.99)),
          "path": pathlib.PurePosixPath("a/b"), "when": datetime.datetime(2026, 1, 1), "tags": {"a", "b"}, "seen": seen,
          "score": numpy.float64(0.75), "scores": numpy.arange(3.0), "device": torch.device("cpu"), "blob": b"12",
          "dtype": torch.float16, "optimizer": optimizer.state_dict(), "rng": numpy.random.RandomState(1).get_state(),
          "large": 2**100, "size": torch.Size([1, 2])}
save("imagenet.pt", dict(beside, state_dict=small))
save("nested.pt", dict(beside, ema={"module": small, "n": 3}))
save("other.pt", dict(beside, net=small))
save("two.pt", dict(beside, generator=small, discriminator=small.copy()))
save("whole.pt", {"model": torch.nn.Linear(2, 1), "epoch": 3})
save("complex.pt", {"a": ramp(1), "c": torch.zeros(2, dtype=torch.complex64)})
averaged = {"model": {"a": ramp(2), "b": ramp(3)}, "ema": {"module": {"module.a": ramp(2), "module.b": ramp(3)}, "n": 3}}
save("averaged.pt", averaged)
save("float8.pt", {"a": ramp(2).to(torch.float8_e4m3fn)})
torch.serialization.set_crc32_options(False)
save("unchecked.pt", {"a": ramp(2), "zeros": torch.zeros(2)})
torch.serialization.set_crc32_options(True)
with torch.serialization.skip_data():
    save("skipped.pt", {"a": ramp(2)})
torch.distributed.checkpoint.save({"model": {"a": ramp(2, 3), "n": torch.tensor(4)}, "epoch": 3}, checkpoint_id=folder + "dcp")
