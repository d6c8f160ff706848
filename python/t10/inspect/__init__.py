"""`t10 inspect`: signature, statistics and operator graph of a model file, without lowering.

facts = model_facts("bert.onnx")
facts.inputs, facts.weights.n_bytes
for row in statistics(facts): ...
"""

from t10.inspect.facts import GraphFacts, ModelFacts, NodeFacts, Port, WeightFacts
from t10.inspect.files import model_facts
from t10.inspect.statistics import KindStatistics, statistics

__all__ = [
    "GraphFacts",
    "KindStatistics",
    "ModelFacts",
    "NodeFacts",
    "Port",
    "WeightFacts",
    "model_facts",
    "statistics",
]
