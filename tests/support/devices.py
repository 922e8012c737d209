"""Where op tests run: always on the CPU, and on a CUDA device where there is one."""

import pytest
import torch

# Op tests are many small calls; a second thread only waits.
torch.set_num_threads(1)

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
        ],
    ),
]
