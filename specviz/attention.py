"""How new tokens look back at the cached ones, in the shapes that each device's kernels like.

A *look* mixes one layer's values: queries [n, H, D] of the new tokens, and the layer's keys and
values, each [1, K, capacity, D], give n rows of H * D numbers, in any shape that can be reshaped
to [n, H * D]. Query head h reads the keys of head h // G, where G = H / K.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

Look: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
LENGTH_STEP = 16


def leave_out_cudnn() -> None:
    """Never take cuDNN's attention, in the whole process. torch prefers it on Hopper and newer, and
    it makes a plan, of some 30 ms, for each number of cached tokens: every decode step has a new
    one."""
    torch.backends.cuda.enable_cudnn_sdp(False)


def look_back(start: int, end: int, groups: int, like: Tensor) -> Look:
    """The look of tokens ``start`` .. ``end`` - 1 of a text whose states are all there.

    ``groups`` is G; ``like`` gives dtype and device. On the CPU a token's result does not depend
    on how many share the pass (see ``by_row``); on a GPU, where the products around it round
    differently for one row and for several anyway, the fastest kernels are asked for.
    """
    if start == 0:
        return partial(whole, end)
    if like.device.type != "cuda":
        return partial(by_row, by_row_mask(start, end, like))
    if end - start == 1:
        return partial(single, end)
    positions = torch.arange(start, end, device=like.device)
    places = torch.arange(_up_to_step(end), device=like.device)
    return partial(grouped, grouped_mask(positions, places, groups, like))


def whole(end: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """All of the text is new, and the kernel's own causal mask says who sees whom."""
    return F.scaled_dot_product_attention(
        queries.transpose(0, 1)[None],
        keys[:, :, :end],
        values[:, :, :end],
        is_causal=True,
        enable_gqa=True,
    )[0].transpose(0, 1)  # [n, H, D]


def by_row(mask: Tensor, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Each new token is a batch entry of its own whose rows are the heads that share a key, and
    keys are read up to a multiple of LENGTH_STEP with the surplus masked: the kernel then splits
    its sums in the same places however many tokens share the pass."""
    count, seen = mask.shape[0], mask.shape[-1]
    return F.scaled_dot_product_attention(
        queries.reshape(count, keys.shape[1], -1, keys.shape[-1]),
        keys[:, :, :seen].expand(count, -1, -1, -1),
        values[:, :, :seen].expand(count, -1, -1, -1),
        attn_mask=mask,
    )  # [n, K, G, D]


def by_row_mask(start: int, end: int, like: Tensor) -> Tensor:
    """What to add to each new token's scores, [n, 1, 1, up to LENGTH_STEP more than end]: 0 where
    it may look, -inf where not."""
    places = torch.arange(_up_to_step(end), device=like.device)
    unseen = places > torch.arange(start, end, device=like.device)[:, None, None, None]
    return like.new_zeros(unseen.shape).masked_fill(unseen, float("-inf"))


def single(end: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One new token sees everything: without a mask the flash kernel may be taken. The heads
    that share a key are its rows, so that keys are read once."""
    heads, width = keys.shape[1], keys.shape[-1]
    return F.scaled_dot_product_attention(
        queries.reshape(1, heads, -1, width), keys[:, :, :end], values[:, :, :end]
    )  # [1, K, G, D]


def grouped(mask: Tensor, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Several new tokens: the rows of a key's head are its query heads at every new token, so
    that keys are read once for all of them. ``mask`` is ``grouped_mask``'s."""
    count, heads, width = queries.shape[0], keys.shape[1], keys.shape[-1]
    seen = mask.shape[-1]
    rows = queries.reshape(count, heads, -1, width).transpose(0, 1)  # [K, n, G, D]
    mixed = F.scaled_dot_product_attention(
        rows.reshape(1, heads, -1, width), keys[:, :, :seen], values[:, :, :seen], attn_mask=mask
    )  # [1, K, n * G, D]
    return mixed.view(heads, count, -1, width).transpose(0, 1)  # [n, K, G, D]


def grouped_mask(positions: Tensor, places: Tensor, groups: int, like: Tensor) -> Tensor:
    """What to add to the scores of ``groups`` heads at each of ``positions`` [n] looking at
    ``places`` [seen]; [n * groups, seen]. No number leaves the device on the way."""
    unseen = (places > positions[:, None])[:, None].expand(-1, groups, -1)
    unseen = unseen.reshape(-1, places.shape[0])
    return like.new_zeros(unseen.shape).masked_fill(unseen, float("-inf"))


def _up_to_step(end: int) -> int:
    return -(-end // LENGTH_STEP) * LENGTH_STEP
