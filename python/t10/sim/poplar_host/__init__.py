"""A host implementation of the part of the Poplar API that emitted programs use."""

from t10.sim.poplar_host.build import VertexCode
from t10.sim.poplar_host.run import PoplarHostResult, run_poplar_host, run_program

__all__ = ["PoplarHostResult", "VertexCode", "run_poplar_host", "run_program"]
