"""The published errors of AlexNet on ImageNet-C, which mCE is measured by: the files at 224 px, and nothing else."""

from __future__ import annotations

from testbed.metrics.corruption_error import Errors

_ERRORS = {
    "gaussian_noise": (0.69528, 0.82542, 0.93554, 0.98138, 0.99452),
    "shot_noise": (0.71224, 0.85108, 0.93574, 0.98182, 0.99146),
    "impulse_noise": (0.78374, 0.89808, 0.9487, 0.9872, 0.99548),
    "defocus_blur": (0.65624, 0.73202, 0.85036, 0.91364, 0.94714),
    "glass_blur": (0.64308, 0.75054, 0.88806, 0.91622, 0.93344),
    "motion_blur": (0.5843, 0.70048, 0.82108, 0.8975, 0.92638),
    "zoom_blur": (0.70008, 0.76992, 0.80784, 0.84198, 0.87198),
    "snow": (0.71726, 0.88392, 0.86468, 0.9187, 0.94952),
    "frost": (0.6139, 0.79734, 0.8879, 0.89942, 0.9343),
    "fog": (0.67474, 0.7605, 0.84378, 0.8726, 0.945),
    "brightness": (0.4514, 0.48502, 0.54048, 0.62166, 0.7244),
    "contrast": (0.64548, 0.7615, 0.88874, 0.9776, 0.9927),
    "elastic_transform": (0.52596, 0.70116, 0.55686, 0.64076, 0.80554),
    "pixelate": (0.52218, 0.5462, 0.73728, 0.87092, 0.91262),
    "jpeg_compression": (0.51002, 0.54718, 0.57294, 0.65458, 0.74778),
}

ALEXNET_IMAGENET_C = Errors(
    name="alexnet-published",
    source="AlexNet on the published files of ImageNet-C, 224 px and not resized (Hendrycks & Dietterich 2019)",
    cells={(name, severity): error for name, row in _ERRORS.items() for severity, error in enumerate(row, start=1)},
    clean=0.435,
)
"""Errors per severity from the first authors' public results; a baseline for no other data and no other protocol."""
