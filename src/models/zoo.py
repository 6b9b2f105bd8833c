"""Models that others publish, made when they are asked for: `timm:...`, `torchvision:...` and `hf-hub:...`."""

from __future__ import annotations

from models._hub_models import HubModels
from models._timm_models import TimmModels
from models._torchvision_models import TorchvisionModels
from registry import registry

registry.add_model_family("timm", TimmModels())
registry.add_model_family("torchvision", TorchvisionModels())
registry.add_model_family("hf-hub", HubModels())
