"""Trains a small BERT to tell two kinds of sequences apart with Accelerate: gradients of four batches are accumulated."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_cosine_schedule_with_warmup

ACCUMULATE = 4
EPOCHS = 3
VOCABULARY = 400


def dataset(size, length):
    """Sequences whose tokens grow, or not."""
    draws = torch.Generator().manual_seed(1)
    tokens = torch.randint(VOCABULARY, (size, length), generator=draws)
    labels = torch.randint(2, (size,), generator=draws)
    return TensorDataset(torch.where(labels[:, None] == 1, tokens.sort().values, tokens), labels)


def main():
    set_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=ACCUMULATE)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512,
        max_position_embeddings=64, num_labels=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loader = DataLoader(dataset(320, 48), batch_size=8, shuffle=True)
    steps = EPOCHS * len(loader)
    schedule = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=steps // 10, num_training_steps=steps)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

    step, total = 0, 0.0
    model.train()
    for _ in range(EPOCHS):
        for tokens, labels in loader:
            with accelerator.accumulate(model):
                loss = model(input_ids=tokens, labels=labels).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            total += loss.item()
            if accelerator.sync_gradients:
                step += 1
                accelerator.print(f"step {step} loss {total / ACCUMULATE}")
                total = 0.0


if __name__ == "__main__":
    main()
