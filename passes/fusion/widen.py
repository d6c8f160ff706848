"""Sums of products that stay in 16 bits (`narrow`), kept in f32 where a chip takes longer for those of 16 bits.

```
acc: f16 += a * b;  y = f(acc + c)     becomes     acc += extf(a) * extf(b);  y = f(truncf(acc + extf(c)))
```

The engine has no 16-bit sums of few features or of windows that begin anywhere: those are added up point by point.
"""

from __future__ import annotations

from t10.core.orders import given_order
from t10.passes.fusion.demands import counted_product
from t10.passes.fusion.graph import FusionGraph, Nest, is_product
from t10.passes.fusion.narrow import widened
from t10.passes.fusion.product_prices import MANY_BOXES, Target, is_slower


def widen_slow_sums(graph: FusionGraph, target: Target) -> None:
    """Keep sums of products in f32 where those in f16 take longer on a target, as its tensors are stored."""
    for nest in graph.nests():
        if nest.acc_type != "f16" or nest.combine != "arith.addf" or not is_product(nest):
            continue
        wide = widened(nest)
        if wide is not None and _takes_longer(graph, nest, wide, target):
            graph.add(wide)


def _takes_longer(graph: FusionGraph, narrow: Nest, wide: Nest, target: Target) -> bool:
    first, second, result = counted_product(graph, narrow, target).tensors
    orders = given_order(len(first.dims)), given_order(len(second.dims)), given_order(len(result.dims))
    products = (counted_product(graph, nest, target, MANY_BOXES) for nest in (narrow, wide))
    one, other = (product.link_bytes(orders) for product in products)
    return is_slower(one, other)
