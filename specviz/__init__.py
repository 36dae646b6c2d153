"""specviz: see speculative decoding happen on a real model pair, measured."""

__version__ = "0.1.0"
