#!/usr/bin/env python
"""Evaluates models on settings: names to a plan, the plan to stored logits, and the results as a table or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from testbed.cli import AMOUNT, BATCH_SIZE, ManyCommand, complete_names, data_root_option, no_download_option, run


@click.command(cls=ManyCommand, context_settings={"show_default": True})
@click.option(
    "--models", multiple=True, required=True, metavar="NAME...", help="Models, by name or glob.",
    shell_complete=complete_names("models"),
)  # fmt: skip
@click.option(
    "--eval-settings", multiple=True, required=True, metavar="NAME...", help="Settings, by name or glob.",
    shell_complete=complete_names("eval_settings"),
)  # fmt: skip
@click.option("--gpus", multiple=True, type=int, metavar="ID...", help="CUDA devices; all if left out, else the CPU.")
@click.option("--workers", type=click.IntRange(min=0), help="CPU worker processes; 0 works in this process.")
@click.option(
    "--workers-per-gpu", type=click.IntRange(min=1), default=1, metavar="N", help="Worker processes that share a GPU."
)
@click.option("--threads", type=click.IntRange(min=1), default=1, help="CPU threads per worker.")
@click.option("--seeds", multiple=True, type=click.IntRange(min=0), default=(0,), metavar="N...", help="Seeds of runs.")
@click.option(
    "--draws", type=click.IntRange(min=1), help="Draws of the noise per image; each setting's own if left out."
)
@click.option(
    "--batch-size", type=BATCH_SIZE, metavar="N|auto",
    help="Images per pass; auto: the largest that is safe. Each model's own if left out.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(["fp32", "tf32", "bf16", "fp16"]),
    help="How networks compute; PyTorch's own default if left out.",
)  # fmt: skip
@click.option("--channels-last", is_flag=True, help="Keep images and weights in the NHWC layout.")
@click.option("--compile", "is_compiled", is_flag=True, help="Run networks through torch.compile.")
@click.option(
    "--perturb-on", type=click.Choice(["auto", "device", "cpu"]), default="auto",
    help="Where noise and corruptions are computed; auto: where it is cheaper.",
)  # fmt: skip
@click.option(
    "--bank", type=click.Choice(["on", "off"]), default="on",
    help="Keep decoded images on disk; off: decode them whenever they are needed.",
)  # fmt: skip
@click.option(
    "--bank-limit", type=AMOUNT, envvar="TESTBED_BANK_LIMIT", metavar="GB",
    help="What decoded images may take on disk: the oldest go first. [default: all but a tenth of the disk]",
)  # fmt: skip
@click.option(
    "--unit-timeout", type=AMOUNT, default=1800.0, metavar="SECONDS",
    help="A worker without a sign of life for so long is replaced; one that starts has a minute at least.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N samples of a seeded order.")
@click.option(
    "--store-logits",
    metavar="POLICY",
    help="full, lossless, float16, topk:K or predictions; each setting's own if left out.",
)
@click.option("--db", "use_db", is_flag=True, help="Store in the shared database instead of a log directory.")
@click.option(
    "--db-url", envvar="TESTBED_DB", metavar="URL", help="The shared database. [default: results/testbed.sqlite]"
)
@click.option(
    "--logdir", type=click.Path(path_type=Path), default=Path("results/log"), help="Without --db: results go here."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--dry-run", is_flag=True, help="Check everything and print the plan; evaluate nothing.")
@click.option("--wait", is_flag=True, help="Wait while another program writes to the database; else that is an error.")
@click.option(
    "--doctor", is_flag=True, help="Evaluate nothing; tell from a few hundred images whether the models see them right."
)
@click.option("--profile", "is_profiled", is_flag=True, help="Print where the time of every device went.")
@click.option("--quiet", is_flag=True, help="No progress bar, and no line per finished evaluation.")
@click.option("--plugin", "plugins", multiple=True, metavar="PATH...", help="Files or folders with more definitions.")
@click.option(
    "--dataset", "datasets", multiple=True, metavar="NAME=PATH...", help="A folder of class folders, or an .npz."
)
@click.option(
    "--canonical-size", type=click.IntRange(min=1), metavar="PX", help="Of --dataset: size at which noise is drawn."
)
@click.option(
    "--color-mode", type=click.Choice(["RGB", "L"]), default="RGB", help="Of --dataset: what images are decoded to."
)
@click.option("--class-order", metavar="ORDER", help="Of --dataset: numeric, lexicographic, or a file of class names.")
@click.option("--label-space", metavar="NAME", help="Of --dataset, local:PATH: whose classes these are, e.g. cifar10.")
@data_root_option
@no_download_option
@click.option(
    "--weights", multiple=True, metavar="NAME=FILE...", help="Of a model: parameters, a .safetensors or torch file."
)
@click.option(
    "--stochastic", multiple=True, metavar="NAME...",
    help="Models that are random by design: seeded for every unit of work, and told beside results.",
)  # fmt: skip
@click.option(
    "--weights-key", metavar="NAME",
    help="Of local:PATH, --weights: which of a file's sets of weights, e.g. model_ema.",
)  # fmt: skip
@click.option("--arch", metavar="NAME", help="Of local:PATH: a timm or torchvision name, or module:function.")
@click.option("--num-classes", type=click.IntRange(min=1), help="Of local:PATH: outputs of the network.")
@click.option("--input-size", type=click.IntRange(min=1), metavar="PX", help="Of local:PATH: size of its images.")
@click.option("--mean", multiple=True, type=float, metavar="X...", help="Of local:PATH: mean per channel, in [0, 1].")
@click.option("--std", multiple=True, type=float, metavar="X...", help="Of local:PATH: standard deviation per channel.")
def main(**options: Any) -> int:
    """Evaluate models on settings and store their logits.

    \b
    Example:
      python eval.py --models digits-resnet digits-linear --eval-settings digits-mscr-linf

    Exit codes: 0 all done, 1 some evaluation failed or the results cannot be printed, 2 the request is wrong, 3 the
    database, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM).
    """
    from testbed.commands.evaluate import evaluate_command

    return evaluate_command(**options)


if __name__ == "__main__":
    run(main)
