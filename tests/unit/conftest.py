"""Tiny models run fastest on one thread, and do not fight over the cores of a small machine."""

import torch

torch.set_num_threads(1)
