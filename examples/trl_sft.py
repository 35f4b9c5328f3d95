"""Fine-tunes a small Llama on sentences with the SFTTrainer of TRL."""

import random
import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

SUBJECTS = "the cat|the dog|a bird|a child|my neighbour|her teacher|our doctor|his friend".split("|")
VERBS = "sees|hears|likes|follows|meets|calls|helps|finds".split("|")


def sentences(count, clauses):
    draws = random.Random(0)
    return [" and ".join(f"{draws.choice(SUBJECTS)} {draws.choice(VERBS)} {draws.choice(SUBJECTS)}"
                         for _ in range(clauses)) for _ in range(count)]


def tokenizer_of(texts):
    words = sorted({word for text in texts for word in text.split()})
    vocabulary = {word: i for i, word in enumerate(["<pad>", "<s>", "</s>", "<unk>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>",
                                   unk_token="<unk>")


def main():
    set_seed(0)
    texts = sentences(256, clauses=5)
    tokenizer = tokenizer_of(texts)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=192, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id))
    with tempfile.TemporaryDirectory() as folder:
        trainer = SFTTrainer(
            model=model,
            args=SFTConfig(
                output_dir=folder,
                max_steps=30,
                per_device_train_batch_size=4,
                learning_rate=2e-3,
                lr_scheduler_type="cosine",
                max_length=48,
                bf16=False,
                logging_steps=1,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                seed=0,
            ),
            train_dataset=Dataset.from_dict({"text": texts}),
            processing_class=tokenizer,
        )
        trainer.train()
        for row in trainer.state.log_history:
            if "loss" in row:
                print(f"step {row['step']} loss {row['loss']}")


if __name__ == "__main__":
    main()
