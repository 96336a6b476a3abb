"""What the families share: weights spread like trained ones, a family's model with inputs and outputs, a tokenizer."""

import dataclasses
import pathlib
from typing import Callable

import tokenizers
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[3]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]


@dataclasses.dataclass
class Family:
    """A model, inputs by name, and what the model gives for them by name; a vocabulary where it reads text.

    `run(model, inputs)` is called with the model in each dtype; floating-point inputs are in that dtype.
    """

    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    run: Callable[[torch.nn.Module, dict[str, torch.Tensor]], dict[str, torch.Tensor]]
    vocab_size: int = 0


def spread(model):
    """Weights as large as those of trained models, norms other than one."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 1.0 / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def tokenizer(vocab_size):
    """A small one, trained on the project's README; its special tokens are the first, as the configurations say."""
    model = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    model.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size, limit_alphabet=vocab_size // 2, special_tokens=SPECIAL, show_progress=False
    )
    model.train([str(ROOT / "README.md")], trainer)
    model.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    pad, start, end, unknown = SPECIAL
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token=pad, bos_token=start, eos_token=end, unk_token=unknown
    )
