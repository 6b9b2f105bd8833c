"""Which family of architectures a model is of, told by its name: models of one family are not independent of another.

Lines over many models are resampled by family, too. A family is the idea that its members share, so its sizes, versions
and trainings are one: `resnet50`, `FixResNet50` and `wide_resnet101_2` are, `resnext50_32x4d` has another block.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

# What a name may hold that is not at its beginning, or that has several spellings; the first that is found counts.
_FOUND: Mapping[str, str] = MappingProxyType(
    {
        r"random.?forest": "random forest",
        r"nearest|(^|[_-])(1|one).?nn": "nearest neighbour",
        r"lstsq|linear.?pixels": "linear",
        r"(^|_)cnn": "cnn",
        r"densenet|rdnet": "densenet",
        r"nfnet|nf_(ecares|res|reg)": "nfnet",
        r"halo|botnet|lambda": "resnet with attention",
        r"^dla": "dla",
        r"se_?res|senet|skres|ecares|eca_": "senet",
        r"efficientnet|mnasnet|fbnet|hardcorenas|lcnet|mixnet|tinynet": "efficientnet",
        r"inception_next|convnext": "convnext",
        r"inception|googlenet": "inception",
        r"resne[sx]t|res2ne[tx]": "resnext",
        r"regnet": "regnet",
        r"resnet|bit-m": "resnet",
        r"nasnet": "nasnet",
        r"darknet|^cs3": "darknet",
        r"mobilenet|mobileone": "mobilenet",
        r"ghostnet": "ghostnet",
        r"coatne[tx]|maxx?vit": "maxvit",
        r"poolformer|caformer|convformer": "metaformer",
        r"mixer|mlp": "mlp",
        r"xception|hiera|vovnet|hgnet|rexnet|twins|selecsls|test_": "",
        r"efficientformer|efficientvit|mobilevit|tiny_vit|fastvit|repvit|nextvit|gcvit|davit|shvit|mvit|crossvit": "",
        r"swin": "swin",
        r"^(vit|deit|beit|eva|naflexvit|flexivit|siglip|cait)": "vit",
    }
)
_BEGINNING = re.compile(r"[a-z]+")


def family_of(name: str) -> str:
    """The family of architectures of a model, by its name or its architecture's; the name itself if it tells none.

    Args: name: in any spelling of the testbeds and libraries, also `timm:NAME.TAG` or `module:function`.
    """
    arch = name.rpartition(":")[2].rpartition("/")[2].partition(".")[0].lower()
    for pattern, family in _FOUND.items():
        if (found := re.search(pattern, arch)) is not None:
            return family or found.group().strip("_")
    beginning = _BEGINNING.search(arch)
    return beginning.group() if beginning else name
