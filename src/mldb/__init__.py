"""Where model files written for the ImageNet Testbed look for their weights."""
