"""What the tags of timm's names tell, such as `fb_in22k_ft_in1k`: the data sets that a model was trained on, in order.

A tag that names its teacher's data alone is not among them: a distilled model counts by the images it saw itself.
"""

from __future__ import annotations

TRAINED_ON = {  # by a part of the tag
    "in1k": "imagenet-1k",
    "in12k": "imagenet-12k",
    "in21k": "imagenet-21k",
    "inw21k": "imagenet-21k",
    "in22k": "imagenet-22k",
    "dino": "imagenet-1k",
    "m30m": "merged-30m",
    "m38m": "merged-38m",
    "ig1b": "instagram-1b",
    "seer": "instagram-random-1b",
    "swag": "instagram-3.6b",
    "yfcc100m": "yfcc-100m",
    "yfcc15m": "yfcc-15m",
    "cc12m": "cc-12m",
    "jft": "jft-300m",
    "laion400m": "laion-400m",
    "laion2b": "laion-2b",
    "laiona": "laion-aesthetics",
    "openai": "openai-wit",
    "datacomp1b": "datacomp-1b",
    "datacompxl": "datacomp-xl",
    "dfn2b": "dfn-2b",
    "dfn5b": "dfn-5b",
    "merged2b": "merged-2b",
    "webli": "webli",
    "lvd142m": "lvd-142m",
    "lvd1689m": "lvd-1689m",
}


def trained_on(tag: str) -> tuple[str, ...]:
    """The data sets that a tag names, in the order of training."""
    return tuple(dict.fromkeys(TRAINED_ON[part] for part in tag.split("_") if part in TRAINED_ON))
