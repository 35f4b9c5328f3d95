"""Trains a small GPT-2 from scratch with the Trainer of transformers: it logs, evaluates and saves checkpoints."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Counting(torch.utils.data.Dataset):
    """Sequences that count upwards from a random number by a random stride: the next token is easy to learn."""

    def __init__(self, size, length, vocabulary, seed):
        draws = torch.Generator().manual_seed(seed)
        start = torch.randint(vocabulary, (size, 1), generator=draws)
        stride = torch.randint(1, 8, (size, 1), generator=draws)
        self.tokens = (start + stride * torch.arange(length)) % vocabulary

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": self.tokens[i]}


def main():
    set_seed(0)
    config = GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=4, n_head=4,
                        bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=36,
            per_device_train_batch_size=8,
            per_device_eval_batch_size=8,
            learning_rate=1e-3,
            warmup_steps=4,
            weight_decay=0.01,
            logging_steps=1,
            eval_strategy="steps",
            eval_steps=12,
            save_strategy="steps",
            save_steps=12,
            save_total_limit=2,
            load_best_model_at_end=True,
            report_to="none",
            disable_tqdm=True,
            seed=0,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=Counting(512, 64, config.vocab_size, seed=1),
            eval_dataset=Counting(32, 64, config.vocab_size, seed=2),
        )
        trainer.train()
        trainer.save_model(folder + "/final")
        for row in trainer.state.log_history:
            for name in "loss", "eval_loss":
                if name in row:
                    print(f"step {row['step']} {name} {row[name]}")


if __name__ == "__main__":
    main()
