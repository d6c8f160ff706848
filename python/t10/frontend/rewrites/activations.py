"""The activations that recurrent operators name."""

from __future__ import annotations

from dataclasses import dataclass

from t10.errors import UnsupportedOpError
from t10.frontend.rewrites.site import Site

_DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_PLAIN = {
    "relu": "Relu",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "softsign": "Softsign",
    "softplus": "Softplus",
}
_ALPHAS: dict[str, float | None] = {
    "affine": None,
    "leakyrelu": 0.01,
    "thresholdedrelu": 1.0,
    "scaledtanh": None,
    "hardsigmoid": 0.2,
    "elu": 1.0,
}
_BETAS: dict[str, float | None] = {"affine": 0.0, "scaledtanh": None, "hardsigmoid": 0.5}
"""Numbers that are left out; None where ONNX states none."""


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation by its name in lower case, and its two numbers."""

    name: str
    alpha: float
    beta: float

    def write(self, site: Site, x: str) -> str:
        """Write it and return the name of what it makes."""
        if self.name in _PLAIN:
            return site.op(_PLAIN[self.name], x)
        if self.name == "leakyrelu":
            return site.op("LeakyRelu", x, alpha=self.alpha)
        if self.name == "thresholdedrelu":
            return site.op("ThresholdedRelu", x, alpha=self.alpha)
        if self.name == "elu":
            return site.op("Elu", x, alpha=self.alpha)
        if self.name == "hardsigmoid":
            return site.op("HardSigmoid", x, alpha=self.alpha, beta=self.beta)
        alpha, beta = (site.scalar(value, site.kind(0)) for value in (self.alpha, self.beta))
        if self.name == "affine":
            return site.op("Add", site.op("Mul", x, alpha), beta)
        return site.op("Mul", site.op("Tanh", site.op("Mul", x, beta)), alpha)


def activations(site: Site, operator: str, n_directions: int) -> tuple[Activation, ...] | None:
    """Return the activations of all directions of an RNN, GRU or LSTM, None if there is one that ONNX does not know.

    More may be given than are used: the default that ONNX states for an RNN is for two directions. Raises
    `UnsupportedOpError` for one whose numbers are left out and have no default.
    """
    default = _DEFAULTS[operator] * n_directions
    given = site.option("activations", None)
    texts = [text.decode() if isinstance(text, bytes) else str(text) for text in given] if given else default
    names = [text.lower() for text in texts][: len(default)]
    if len(names) < len(default) or any(name not in _PLAIN and name not in _ALPHAS for name in names):
        return None
    alphas, betas = list(site.option("activation_alpha", [])), list(site.option("activation_beta", []))
    found: list[Activation] = []
    for name in names:
        # The numbers are listed for those activations alone that have any.
        alpha = alphas.pop(0) if name in _ALPHAS and alphas else _ALPHAS.get(name, 0.0)
        beta = betas.pop(0) if name in _BETAS and betas else _BETAS.get(name, 0.0)
        if alpha is None or beta is None:
            raise UnsupportedOpError(
                f"{operator} activates by {name} without numbers of it, for which ONNX states no default",
                operator=site.node.name or site.stem,
                hint="state activation_alpha and activation_beta",
            )
        found.append(Activation(name, float(alpha), float(beta)))
    return tuple(found)
