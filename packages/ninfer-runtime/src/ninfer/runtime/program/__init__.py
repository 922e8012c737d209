"""The executor: rows, pages, masks, sampling and commits of one model on torch.

Owns physical state and its transactions. Does not own requests, grammars or published text.
"""

from ninfer.runtime.program.assembly import RoundForm
from ninfer.runtime.program.torch_program import TorchProgram

__all__ = ["RoundForm", "TorchProgram"]
