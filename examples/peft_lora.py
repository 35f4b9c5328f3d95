"""Fine-tunes a small GPT-2 by LoRA with PEFT: the weights of the network stay, small matrices beside them are trained."""

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

STEPS = 30


def main():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=4, n_head=4)
    model = get_peft_model(GPT2LMHeadModel(config), LoraConfig(
        task_type=TaskType.CAUSAL_LM, r=8, lora_alpha=16, lora_dropout=0.05, target_modules=["c_attn", "c_proj"],
        fan_in_fan_out=True))
    model.print_trainable_parameters()

    start = torch.randint(config.vocab_size, (STEPS * 8, 1), generator=torch.Generator().manual_seed(1))
    tokens = (start + 3 * torch.arange(64)) % config.vocab_size
    loader = DataLoader(TensorDataset(tokens), batch_size=8, shuffle=True)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
    schedule = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=3, num_training_steps=STEPS)

    model.train()
    for step, (batch,) in enumerate(loader):
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item()}")


if __name__ == "__main__":
    main()
