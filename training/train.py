"""Training: mixed precision where the CPU multiplies bfloat16 fast, resumable, the same for the same seed."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from training.batches import Ids, chunk, tokenized_help
from training.corpus import read_pairs
from training.grammar.templates import split
from training.tokenizer import Tokenizer

POSITIONS = 512
RECORD = "training.json"
_FORBIDDEN = -1e4


@dataclass(frozen=True)
class Plan:
    """How much to train and how.

    The learning rate rises over `warmup` steps, stays at `rate`, and falls linearly to a fiftieth of it over the last
    `cooldown` of the tokens, so that the length can be changed until the fall begins.
    """

    tokens: float = 44e6
    batch_tokens: int = 3600
    rate: float = 1.4e-3
    warmup: int = 1000
    cooldown: float = 0.45
    dropout: float = 0.1
    smoothing: float = 0.1
    average: float = 0.9995
    seed: int = 20


CONTINUED = Plan(tokens=17e6, rate=8e-4, warmup=300, cooldown=0.7)


class SmoothedCrossEntropy(torch.autograd.Function):
    """Mean label-smoothed cross entropy of logits `[n, vocabulary]`.

    torch's own keeps and rescans several float32 copies of the logits; on a CPU that costs a fifth of a step.
    """

    @staticmethod
    def forward(context, logits: torch.Tensor, target: torch.Tensor, smoothing: float) -> torch.Tensor:
        values = logits.float()
        total = torch.logsumexp(values, 1)
        context.save_for_backward(logits, total, target)
        context.smoothing = smoothing
        right = values.gather(1, target[:, None])[:, 0]
        # The forbidden pad logit must not enter the mean over the vocabulary.
        mean = (values.sum(1) - values[:, -1]) / (values.shape[1] - 1)
        return (total - (1 - smoothing) * right - smoothing * mean).mean()

    @staticmethod
    def backward(context, gradient: torch.Tensor):
        logits, total, target = context.saved_tensors
        smoothing = context.smoothing
        slope = (logits.float() - total[:, None]).exp_()
        slope[:, :-1] -= smoothing / (logits.shape[1] - 1)
        slope.scatter_add_(1, target[:, None], torch.full((len(target), 1), smoothing - 1))
        return slope.mul_(gradient / len(target)).to(logits.dtype), None, None


def marian(vocabulary: int, dropout: float) -> MarianMTModel:
    """A fresh model that behaves like opus-mt-en-zh where the contract is concerned, at an eighth of its width."""
    pad = vocabulary - 1
    config = MarianConfig(
        vocab_size=vocabulary, decoder_vocab_size=vocabulary, d_model=256, encoder_layers=4, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=1024, decoder_ffn_dim=1024,
        activation_function="swish", max_position_embeddings=POSITIONS, scale_embedding=True, dropout=dropout,
        attention_dropout=0.0, activation_dropout=0.0, share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True, pad_token_id=pad, bos_token_id=0, eos_token_id=0, decoder_start_token_id=pad,
        forced_eos_token_id=0, static_position_embeddings=True,
    )  # fmt: skip
    # The fused attention's backward pass is slow on a CPU for sentences this short.
    return MarianMTModel._from_config(config, attn_implementation="eager")


def padded(rows: list[list[int]], value: int) -> torch.Tensor:
    widest = max(map(len, rows))
    return torch.tensor([row + [value] * (widest - len(row)) for row in rows])


class Trainer:
    """A model in training, with the running average of its weights that becomes the published model."""

    def __init__(self, work: Path, model: Path, plan: Plan, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.manual_seed(plan.seed)
        self.plan, self.work = plan, work
        self.tokenizer = Tokenizer(model)
        self.pad = self.tokenizer.pad
        self.model = marian(self.pad + 1, plan.dropout)
        self.bias = torch.nn.Parameter(torch.zeros(self.pad))
        self.parameters = [*self.model.parameters(), self.bias]
        self.average = [parameter.detach().clone() for parameter in self.parameters]
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
        self.step = self.tokens = self.chunk = 0
        self.stages = [{"seed": plan.seed, "patterns": len(split()[0]), "tokens": 0, "curve": []}]
        self.lower_precision = bfloat16_is_faster()

    def start_from(self, published: Path) -> None:
        """Begin with the weights of a published model that has this tokenizer, as a further stage of its training."""
        self.stages = [*_record(published), *self.stages]
        state = MarianMTModel.from_pretrained(published)
        self.model.load_state_dict(state.state_dict())
        with torch.no_grad():
            self.bias.copy_(state.final_logits_bias[0, :-1])
        self.average = [parameter.detach().clone() for parameter in self.parameters]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        forbidden = torch.full((1,), _FORBIDDEN)
        return self.model.lm_head(hidden) + torch.cat([self.bias, forbidden]).to(hidden.dtype)

    def loss(self, batch: list[Ids], smoothing: float) -> tuple[torch.Tensor, int]:
        """Mean loss of a batch at its real target positions, and how many real source and target tokens it has."""
        source = padded([pair[0] for pair in batch], self.pad)
        target = padded([pair[1] for pair in batch], self.pad)
        start = torch.full((len(target), 1), self.pad)
        precision = torch.autocast("cpu", torch.bfloat16) if self.lower_precision else contextlib.nullcontext()
        real = target != self.pad
        mask = (source != self.pad).long()
        with precision:
            hidden = self.model.model(
                input_ids=source, attention_mask=mask, decoder_input_ids=torch.cat([start, target[:, :-1]], 1),
                use_cache=False,
            ).last_hidden_state  # fmt: skip
            logits = self.logits(hidden[real])
        value = SmoothedCrossEntropy.apply(logits, target[real], smoothing)
        return value, int(mask.sum() + real.sum())

    def learning_rate(self) -> float:
        plan = self.plan
        left = max(0.0, 1 - self.tokens / plan.tokens) / plan.cooldown
        return plan.rate * min(1.0, (self.step + 1) / plan.warmup, max(0.02, left))

    def learn(self, batch: list[Ids]) -> float:
        """One step of training; returns the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        loss, tokens = self.loss(batch, self.plan.smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            # Pad's row starts every output: it is zero in opus-mt, and stays so here.
            self.model.get_input_embeddings().weight[self.pad].zero_()
            keep = min(self.plan.average, (self.step + 1) / (self.step + 20))
            torch._foreach_lerp_(self.average, [p.detach() for p in self.parameters], 1 - keep)
        self.step += 1
        self.tokens += tokens
        return loss.item()

    @contextlib.contextmanager
    def averaged(self) -> Iterator[MarianMTModel]:
        """The model with its averaged weights, ready to translate; the weights in training come back afterwards."""
        training = [parameter.detach().clone() for parameter in self.parameters]
        self._load(self.average)
        with torch.no_grad():
            self.model.final_logits_bias.zero_()
            self.model.final_logits_bias[0, :-1] = self.bias
        try:
            yield self.model.eval()
        finally:
            self.model.train()
            self._load(training)

    def _load(self, values: list[torch.Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.parameters, values):
                parameter.copy_(value)

    def measure(self, pairs: list[Ids]) -> float:
        """Mean loss per target token without smoothing, of the averaged weights."""
        with self.averaged(), torch.no_grad():
            parts = [
                (self.loss(pairs[i : i + 64], 0.0)[0].item(), len(pairs[i : i + 64])) for i in range(0, len(pairs), 64)
            ]
        return sum(loss * count for loss, count in parts) / sum(count for _, count in parts)

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        path = self.work / "checkpoint.pt"
        torch.save(
            {
                "model": self.model.state_dict(), "bias": self.bias, "average": self.average,
                "optimizer": self.optimizer.state_dict(), "step": self.step, "tokens": self.tokens,
                "chunk": self.chunk, "stages": self.stages, "random": torch.get_rng_state(), "plan": asdict(self.plan),
            },
            path.with_suffix(".partial"),
        )  # fmt: skip
        os.replace(path.with_suffix(".partial"), path)

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one."""
        path = self.work / "checkpoint.pt"
        if not path.exists():
            return False
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        with torch.no_grad():
            self.bias.copy_(state["bias"])
        self.average = state["average"]
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.tokens, self.chunk = state["step"], state["tokens"], state["chunk"]
        self.stages = state["stages"]
        torch.set_rng_state(state["random"])
        return True


def bfloat16_is_faster() -> bool:
    """Whether this CPU has instructions for bfloat16 products; without them they are emulated, slower than float32."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def train(work: Path, model: Path, plan: Plan, threads: int, minutes: float, published: Path | None = None) -> None:
    """Train until the plan's tokens or the minutes are used up; write the averaged model into `model`.

    Args:
        published: a model to go on from, with its tokenizer, instead of from nothing.
    """
    if published:
        _copy_tokenizer(published, model)
    trainer = Trainer(work, model, plan, threads)
    resumed = trainer.resume()
    if published and not resumed:
        trainer.start_from(published)
    count = sum(parameter.numel() for parameter in trainer.parameters)
    print(f"{count / 1e6:.2f} M parameters, {'bfloat16 products' if trainer.lower_precision else 'float32'}, "
          f"{'resumed at' if resumed else 'from'} {trainer.tokens / 1e6:.1f} M tokens", flush=True)  # fmt: skip
    help_ids = tokenized_help(work, trainer.tokenizer)
    development = {
        name: [trainer.tokenizer.pair(*pair) for pair in read_pairs(work / file)]
        for name, file in (("help", "help.dev.jsonl"), ("grammar", "grammar.dev.jsonl"))
    }
    deadline = time.monotonic() + 60 * minutes
    write_model(trainer, model)
    while trainer.tokens < plan.tokens and time.monotonic() < deadline:
        _train_chunk(trainer, help_ids, deadline)
        losses = {name: round(trainer.measure(ids), 4) for name, ids in development.items()}
        stage = trainer.stages[-1]
        stage["tokens"] = trainer.tokens
        stage["curve"].append({"tokens": trainer.tokens, **losses})
        trainer.save()
        write_model(trainer, model)
        print(f"== chunk {trainer.chunk}: {stage['curve'][-1]}", flush=True)


def _copy_tokenizer(published: Path, model: Path) -> None:
    model.mkdir(parents=True, exist_ok=True)
    for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"):
        shutil.copyfile(published / name, model / name)


def _record(model: Path) -> list[dict]:
    return json.loads((model / RECORD).read_text(encoding="utf-8"))["stages"]


def _train_chunk(trainer: Trainer, help_ids: list[Ids], deadline: float) -> None:
    batches = chunk(trainer.chunk, trainer.plan.seed, help_ids, trainer.tokenizer, trainer.plan.batch_tokens)
    running, started, before = math.nan, time.monotonic(), trainer.tokens
    for number, batch in enumerate(batches, start=1):
        loss = trainer.learn(batch)
        running = loss if math.isnan(running) else 0.98 * running + 0.02 * loss
        if number % 100 == 0:
            speed = (trainer.tokens - before) / (time.monotonic() - started)
            left = (trainer.plan.tokens - trainer.tokens) / speed / 60
            print(f"chunk {trainer.chunk} {number}/{len(batches)} loss {running:.3f} "
                  f"rate {trainer.learning_rate():.2e} "
                  f"{trainer.tokens / 1e6:.1f} M tokens, {speed:.0f}/s, {left:.0f} min left", flush=True)  # fmt: skip
        if trainer.tokens >= trainer.plan.tokens or time.monotonic() > deadline:
            break
    trainer.chunk += 1


def write_model(trainer: Trainer, model: Path) -> None:
    """Write config, generation config and averaged weights in Hugging Face form, and the record of its training."""
    with trainer.averaged() as averaged:
        averaged.generation_config = GenerationConfig(
            bos_token_id=0, eos_token_id=0, forced_eos_token_id=0, pad_token_id=trainer.pad,
            decoder_start_token_id=trainer.pad, bad_words_ids=[[trainer.pad]], max_length=POSITIONS, num_beams=4,
            renormalize_logits=True,
        )  # fmt: skip
        averaged.save_pretrained(model)
    record = json.dumps({"stages": trainer.stages}, indent=1)
    (model / RECORD).write_text(record + "\n", encoding="utf-8")
