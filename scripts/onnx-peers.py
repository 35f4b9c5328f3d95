"""Networks of torchvision, timm, transformers and by hand, exported three ways, trained by Tensile and by PyTorch.

usage: onnx-peers.py TENSILE FOLDER [NETWORK...]

FOLDER keeps the files and PyTorch's losses, so that another TENSILE runs on the same. Weights are random, batches small, dropout is
zero; five steps of SGD at a rate of 0.001 on one batch. A network agrees if its losses do to 1e-4, or to three times what PyTorch's
losses in float32 differ from those in float64, where that is more. Prints a row a network and a way, and counts. What --save writes
of some of the files, in several forms, is checked by onnx.checker and run by onnxruntime.
"""

import collections
import contextlib
import copy
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
RATE, STEPS = 1e-3, 5
WAYS = ("dynamo=False", "default", "optimize=False")


class Wrapped(nn.Module):
    """A model of transformers as one with tensors alone."""

    def __init__(self, model, out, *names):
        super().__init__()
        self.model, self.out, self.names = model, out, names

    def forward(self, *args):
        return getattr(self.model(**dict(zip(self.names, args))), self.out)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer, self.head = kind(5, 8, 2, batch_first=True, bidirectional=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


class Graph(nn.Module):
    """A graph network: messages along edges are added up at nodes."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 4)
        self.register_buffer("edges", torch.randint(0, 8, (2, 20)))

    def forward(self, x):
        h = torch.relu(self.a(x))
        h = torch.zeros_like(h).index_add(1, self.edges[1], h[:, self.edges[0]])
        return self.b(h).mean(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm, self.head = nn.MultiheadAttention(16, 4, batch_first=True), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.norm(x + self.attention(x, x, x, need_weights=False)[0]).mean(1))


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(11, 16), nn.Linear(16, 48), nn.Linear(16, 11)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, 4)).transpose(1, 2) for t in self.qkv(self.embed(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(y.transpose(1, 2).flatten(2))


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        x = self.a(x)
        x = F.softplus(x) + F.gelu(x, approximate="tanh") + F.mish(x) + F.hardswish(x) + torch.where(x > 0.3, x, 0.5 * x)
        return self.b(x.clamp(-3, 3))


class Stacked(nn.Module):
    """Pieces of a tensor, joined and stacked."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 12), nn.Linear(12, 4)

    def forward(self, x):
        p, q, r = self.a(x).chunk(3, -1)
        s, t = torch.split(torch.stack([p * q, r], 1).flatten(1), [3, 5], 1)
        return self.b(torch.cat([s, t, p], 1))


class Windows(nn.Module):
    """Convolutions along one dimension, with group normalisation, PReLU and a transposed one."""

    def __init__(self):
        super().__init__()
        self.a, self.n, self.p = nn.Conv1d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.PReLU(8)
        self.b, self.head = nn.ConvTranspose1d(8, 4, 2, 2), nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.b(self.p(self.n(self.a(x)))).mean(2))


def image(make, size, batch=4, **options):
    return lambda: (make(**options), (torch.randn(batch, 3, size, size),))


def tokens(make, count=60, batch=2, length=12, mask=False):
    ids = lambda: torch.randint(0, count, (batch, length))
    if not mask:
        return lambda: (make(), (ids(),))
    kept = torch.ones(batch, length, dtype=torch.long)
    kept[0, -3:] = 0
    return lambda: (make(), (ids(), kept))


def networks():
    all = {}
    import torchvision.models as tv

    for name, size in {"alexnet": 64, "vgg11": 32, "vgg11_bn": 32, "resnet18": 64, "resnet50": 64, "resnext50_32x4d": 64, "densenet121": 64,
                       "squeezenet1_1": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "shufflenet_v2_x0_5": 64, "mnasnet0_5": 64,
                       "efficientnet_b0": 64, "regnet_y_400mf": 64, "convnext_tiny": 64, "swin_t": 64}.items():
        all[name] = image(getattr(tv, name), size, num_classes=10)
    all["googlenet"] = image(tv.googlenet, 64, num_classes=10, aux_logits=False, init_weights=False)
    import timm

    for name, size in {"vit_tiny_patch16_224": 64, "deit_tiny_patch16_224": 64, "vit_small_patch16_224": 64, "poolformer_s12": 64,
                       "convnextv2_atto": 64, "levit_128s": 224, "xcit_nano_12_p16_224": 64, "edgenext_xx_small": 64, "mobilevit_xxs": 64,
                       "ghostnet_100": 64, "tf_efficientnet_lite0": 64, "repvgg_a0": 64, "resmlp_12_224": 64, "gmlp_ti16_224": 64,
                       "mixer_s32_224": 64, "regnetx_002": 64, "coat_lite_tiny": 64, "cait_xxs24_224": 64, "pit_ti_224": 64,
                       "mobileone_s0": 64, "hardcorenas_a": 64, "efficientformer_l1": 224}.items():
        sized = {"img_size": size} if size == 64 and any(p in name for p in ("vit_t", "vit_s", "deit", "xcit", "resmlp", "gmlp", "mixer", "coat", "cait", "pit_")) else {}
        all[name] = image(timm.create_model, size, batch=2 if size > 64 else 4, model_name=name, num_classes=10, **sized)
    import transformers as T

    small = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, hidden_dropout_prob=0.0,
                 attention_probs_dropout_prob=0.0, num_labels=5)
    score = lambda kind, config, *names: lambda: Wrapped(kind(config), "logits", *(names or ("input_ids",)))
    all["hf_bert"] = tokens(score(T.BertForSequenceClassification, T.BertConfig(**small)))
    all["hf_bert_mask"] = tokens(score(T.BertForSequenceClassification, T.BertConfig(**small), "input_ids", "attention_mask"), mask=True)
    all["hf_roberta"] = tokens(score(T.RobertaForSequenceClassification, T.RobertaConfig(**small, pad_token_id=1)))
    all["hf_electra"] = tokens(score(T.ElectraForSequenceClassification, T.ElectraConfig(**small, embedding_size=32)))
    all["hf_albert"] = tokens(score(T.AlbertForSequenceClassification, T.AlbertConfig(**small, embedding_size=16)))
    all["hf_distilbert"] = tokens(score(T.DistilBertForSequenceClassification, T.DistilBertConfig(
        vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=64, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0, num_labels=5)))
    all["hf_gpt2"] = tokens(score(T.GPT2LMHeadModel, T.GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0,
                                                                 embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)))
    decoder = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
                   max_position_embeddings=64, use_cache=False)
    all["hf_llama"] = tokens(score(T.LlamaForCausalLM, T.LlamaConfig(**decoder)))
    all["hf_qwen3"] = tokens(score(T.Qwen3ForCausalLM, T.Qwen3Config(**decoder, head_dim=8)))
    all["hf_mistral"] = tokens(score(T.MistralForCausalLM, T.MistralConfig(**decoder)))
    all["hf_opt"] = tokens(score(T.OPTForCausalLM, T.OPTConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                                              ffn_dim=64, max_position_embeddings=64, dropout=0.0, word_embed_proj_dim=32, use_cache=False)))
    all["hf_t5"] = tokens(lambda: Wrapped(T.T5EncoderModel(T.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                                                                     dropout_rate=0.0)), "last_hidden_state", "input_ids"))
    vision = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
                  hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=5)
    all["hf_vit"] = lambda: (Wrapped(T.ViTForImageClassification(T.ViTConfig(**vision)), "logits", "pixel_values"), (torch.randn(4, 3, 32, 32),))
    all["hf_segformer"] = lambda: (Wrapped(T.SegformerForImageClassification(T.SegformerConfig(
        depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 3, 4], hidden_dropout_prob=0.0, classifier_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, drop_path_rate=0.0, num_labels=5)), "logits", "pixel_values"), (torch.randn(2, 3, 64, 64),))
    all["hf_wav2vec2"] = lambda: (Wrapped(T.Wav2Vec2ForSequenceClassification(T.Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8),
        num_feat_extract_layers=2, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, hidden_dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, feat_proj_dropout=0.0, layerdrop=0.0, mask_time_prob=0.0, apply_spec_augment=False, classifier_proj_size=16,
        num_labels=5)), "logits", "input_values"), (torch.randn(2, 800),))
    all["hf_whisper"] = lambda: (Wrapped(T.models.whisper.modeling_whisper.WhisperEncoder(T.WhisperConfig(
        d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, num_mel_bins=16, max_source_positions=20, dropout=0.0)),
        "last_hidden_state", "input_features"), (torch.randn(2, 16, 40),))
    rows = lambda make, *shape: lambda: (make(), (torch.randn(*shape),))
    all["mlp"] = rows(lambda: nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.0), nn.Linear(32, 5)), 8, 20)
    all["lstm"], all["gru"], all["rnn"] = (rows(lambda kind=kind: Recurrent(kind), 4, 6, 5) for kind in (nn.LSTM, nn.GRU, nn.RNN))
    all["gnn"], all["attention"], all["functions"] = rows(Graph, 4, 8, 6), rows(Attention, 4, 6, 16), rows(Functions, 8, 8)
    all["stacked"], all["windows"] = rows(Stacked, 8, 8), rows(Windows, 4, 3, 10)
    all["causal"] = tokens(Causal, 11, 2, 6)
    all["encoder"] = rows(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True), 2), 4, 6, 16)
    return all


def quiet(model):
    for m in model.modules():
        if isinstance(m, (nn.Dropout, nn.Dropout2d)):
            m.p = 0.0
        if isinstance(m, nn.MultiheadAttention):
            m.dropout = 0.0
        if type(m).__name__ == "StochasticDepth":
            m.p = 0.0
    return model.train()


def loss_of(y, data):
    if "targets" in data:
        return F.mse_loss(y, torch.from_numpy(data["targets"]).to(y.dtype))
    return F.cross_entropy(y.reshape(-1, y.shape[-1]), torch.from_numpy(data["labels"]).reshape(-1))


def losses(model, args, data):
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    all = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(*args), data)
        loss.backward()
        optimizer.step()
        all.append(loss.item())
    return all


def export(model, args, way, path):
    names = [f"x{i}" for i in range(len(args))]
    if way == "dynamo=False":
        torch.onnx.export(model, args, path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                          opset_version=18, input_names=names, output_names=["y"])
    elif way == "default":
        torch.onnx.export(model, args, path, input_names=names, output_names=["y"], verbose=False)
    else:
        import onnxscript.optimizer

        program = torch.onnx.export(model, args, input_names=names, output_names=["y"], optimize=False, verbose=False)
        onnxscript.optimizer.fold_constants(program.model)
        program.save(path)


@contextlib.contextmanager
def silent():
    """Keeps what exporters print, also from C++, off the output."""
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        sys.stdout.flush()
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        sys.stdout.flush()
        for fd, number in zip(kept, (1, 2)):
            os.dup2(fd, number)
            os.close(fd)
        os.close(nowhere)


def make(folder, build):
    """Makes what PyTorch makes of a network, once."""
    if os.path.exists(f"{folder}/told.json"):
        return json.load(open(f"{folder}/told.json"))
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    model, args = build()
    quiet(model)
    y = copy.deepcopy(model)(*args)
    data = {f"x{i}": a.numpy() for i, a in enumerate(args)}
    if isinstance(y, torch.Tensor) and y.shape[-1] <= 60 and y.dim() in (2, 3):
        data["labels"] = torch.randint(0, y.shape[-1], y.shape[:-1]).numpy()
    else:
        data["targets"] = torch.randn(y.shape).numpy()
    np.savez(f"{folder}/data.npz", **data)
    told = {"exports": {}, "batch": int(args[0].shape[0])}
    for way in WAYS:
        try:
            with silent():
                export(copy.deepcopy(model), args, way, f"{folder}/{way}.onnx")
        except Exception as e:
            told["exports"][way] = str(e).strip().splitlines()[0][:200] if str(e).strip() else type(e).__name__
    doubles = tuple(a.double() if a.is_floating_point() else a for a in args)
    told["losses"] = losses(copy.deepcopy(model), args, data)
    try:
        told["float64"] = losses(copy.deepcopy(model).double(), doubles, data)
    except Exception:
        told["float64"] = None
    told["targets"] = "targets" in data
    json.dump(told, open(f"{folder}/told.json", "w"))
    return told


def far(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def trained(tensile, folder, way, told):
    """Tensile's first and last loss, or what it says."""
    if way in told["exports"]:
        return None, told["exports"][way]
    command = [tensile, "run", f"{folder}/{way}.onnx", "--batch", str(told["batch"]), "--optimizer", "sgd", "--lr", str(RATE), "--iterations",
               str(STEPS), "--data", f"{folder}/data.npz", "--json", "--no-calibrate"] + (["--loss", "mse"] if told["targets"] else [])
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode:
        return None, p.stderr.strip().splitlines()[-1].replace(folder + "/", "")[:400]
    job = json.loads(p.stdout)["jobs"][0]
    return [job["loss_first"], job["loss_last"]], ""


def row(tensile, folder, way, told):
    got, said = trained(tensile, folder, way, told)
    if got is None:
        return ("not exported" if way in told["exports"] else "refused"), said
    want = [told["losses"][0], told["losses"][-1]]
    apart = far(got, want)
    own = far(told["losses"], told["float64"]) if told["float64"] else 0
    outcome = "agrees" if apart <= max(1e-4, 3 * own) else "differs"
    return outcome, f"{apart:.1e} (float64 {own:.1e})"


def forms(tensile, folder):
    """What --save writes of small networks: the checker takes it, and onnxruntime's loss of it is Tensile's."""
    import onnx
    import onnxruntime
    from onnx import version_converter

    wrong = right = 0
    for name in ("mlp", "gru", "windows", "attention"):
        if not os.path.exists(f"{folder}/{name}/told.json"):
            continue
        told, data = json.load(open(f"{folder}/{name}/told.json")), dict(np.load(f"{folder}/{name}/data.npz"))
        made = {}
        for way in WAYS:
            source = f"{folder}/{name}/{way}.onnx"
            if way in told["exports"]:
                continue
            made[way] = source
            external = f"{folder}/{name}/external.onnx"
            onnx.save(onnx.load(source), external, save_as_external_data=True, location=f"external.{way}.data", size_threshold=0)
            os.rename(external, f"{folder}/{name}/external-{way}.onnx")
            made["external " + way] = f"{folder}/{name}/external-{way}.onnx"
        for version in range(20, 26):
            made[f"operator set {version}"] = f"{folder}/{name}/set{version}.onnx"
            onnx.save(version_converter.convert_version(onnx.load(made[WAYS[0]]), version), made[f"operator set {version}"])
        for form, source in made.items():
            out = f"{folder}/{name}/trained.onnx"
            common = [tensile, "run", "--batch", str(told["batch"]), "--optimizer", "sgd", "--data", f"{folder}/{name}/data.npz", "--json",
                      "--no-calibrate"]
            try:
                subprocess.run(common + ["--lr", "0.01", "--iterations", "3", "--save", out, source], check=True, capture_output=True)
                onnx.checker.check_model(out, full_check=True)
                p = subprocess.run(common + ["--iterations", "1", out], check=True, capture_output=True, text=True)
                want = json.loads(p.stdout)["jobs"][0]["loss_first"]
                session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
                y = session.run(None, {i.name: data[i.name] for i in session.get_inputs()})[0]
                got = loss_of(torch.from_numpy(y), data).item()
                said = "" if abs(got - want) <= 1e-5 * abs(want) else f"onnxruntime has a loss of {got}, Tensile {want}"
            except subprocess.CalledProcessError as e:
                said = e.stderr.decode()[-200:] if isinstance(e.stderr, bytes) else e.stderr[-200:]
            except Exception as e:
                said = str(e).splitlines()[0][:200]
            right, wrong = right + (not said), wrong + bool(said)
            if said:
                print(f"saved {name}, {form}: {said}", flush=True)
    print(f"saved files that checker and onnxruntime take, with Tensile's loss: {right} of {right + wrong}")


def main(tensile, folder, *chosen):
    all = networks()
    if unknown := [name for name in chosen if name not in all]:
        sys.exit(f"there is no network {', '.join(unknown)}: choose among {', '.join(all)}")
    counts = {way: collections.Counter() for way in WAYS}
    some = 0
    for name in chosen or all:
        try:
            told = make(f"{folder}/{name}", all[name])
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {str(e)[:200]}", flush=True)
            continue
        outcomes = []
        for way in WAYS:
            outcome, said = row(tensile, f"{folder}/{name}", way, told)
            outcomes.append(outcome)
            counts[way][outcome] += 1
            print(f"{name:24} {way:16} {outcome:12} {said}", flush=True)
        some += "agrees" in outcomes
    for way, count in counts.items():
        print(f"{way}: {sum(count.values())} networks: " + ", ".join(f"{count[k]} {k}" for k in ("agrees", "differs", "refused", "not exported")))
    print(f"by at least one way: {some} agree")
    forms(tensile, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
