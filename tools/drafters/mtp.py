"""The multi-token-prediction drafter as training sees it: chained steps over whole sequences.

Names: tensors are called as in Qwen checkpoints (``mtp.*``), so that serving reads them unchanged.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from drafters.target import Shape, Target, attended, join_heads, rotate, rotation, split_heads


class MtpDrafter(nn.Module):
    """One decoder layer over pairs of a hidden state and the token that followed it.

    Math: u_t = fc · [norm(embed(x_{t+1})), norm(h_t)]; one pre-norm attention and MLP block at
          position t; the final norm gives g_t, whose head product predicts x_{t+2}. Step j + 1
          reads g of step j in place of h, with token x_{t+1+j}, at position t + j.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        s = shape
        self.shape = shape
        self.weights = nn.ParameterDict()
        for name, size in (("fc", (s.hidden, 2 * s.hidden)), *s.layer_matrices):
            self.weights[name] = nn.Parameter(torch.randn(size) * 0.02)
        for name in ("embedding_norm", "hidden_norm", "input_norm", "mlp_norm", "norm"):
            self.weights[name] = nn.Parameter(torch.ones(s.hidden))

    @torch.no_grad()
    def start_from(self, target: Target) -> None:
        """Copy the target's last block, and pass its hidden state through at first."""
        prefix = f"model.layers.{self.shape.layers - 1}."
        for ours, theirs in CHECKPOINT_NAMES.items():
            if ours not in ("fc", "embedding_norm", "hidden_norm", "norm"):
                name = prefix + theirs.removeprefix("mtp.layers.0.")
                self.weights[ours].copy_(target.weights[name])
        self.weights["norm"].copy_(target.weights["model.norm.weight"])
        eye = torch.eye(self.shape.hidden, device=self.weights["fc"].device)
        self.weights["fc"][:, : self.shape.hidden] += 0.3 * eye
        self.weights["fc"][:, self.shape.hidden :] += eye

    def forward(self, hidden: Tensor, followers: Tensor, steps: int) -> list[Tensor]:
        """Return g of every step.

        Shapes: hidden [B, T, H] of the target; followers [B, T, steps, H], the embeddings of
                x_{t+1}..x_{t+steps}; each result [B, T, H].
        """
        columns = hidden.shape[1]
        kept_keys: list[Tensor] = []
        kept_values: list[Tensor] = []
        results = []
        for step in range(steps):
            hidden = self._step(
                hidden, followers[:, :, step], step, columns, kept_keys, kept_values
            )
            results.append(hidden)
        return results

    def _step(
        self,
        hidden: Tensor,
        follower: Tensor,
        step: int,
        columns: int,
        kept_keys: list[Tensor],
        kept_values: list[Tensor],
    ) -> Tensor:
        w = self.weights
        pair = (self._norm(follower, "embedding_norm"), self._norm(hidden, "hidden_norm"))
        x = functional.linear(torch.cat(pair, dim=-1), w["fc"])
        normed = self._norm(x, "input_norm")
        turns = rotation(self.shape, torch.arange(columns, device=x.device) + step, x.dtype)
        q, k, v = (
            split_heads(functional.linear(normed, w[f"{name}_proj"]), self.shape.head_dim)
            for name in "qkv"
        )
        kept_keys.append(rotate(k, turns))
        kept_values.append(v)
        out = attended(
            rotate(q, turns),
            torch.cat(kept_keys, dim=2),
            torch.cat(kept_values, dim=2),
            chain_mask(columns, step, x.device),
        )
        x = x + functional.linear(join_heads(out), w["o_proj"])
        normed = self._norm(x, "mlp_norm")
        gate = functional.silu(functional.linear(normed, w["gate_proj"]))
        x = x + functional.linear(gate * functional.linear(normed, w["up_proj"]), w["down_proj"])
        return self._norm(x, "norm")

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale = self.weights[name].to(x.dtype)
        return functional.rms_norm(x, (self.shape.hidden,), scale, self.shape.norm_eps)

    def named_tensors(self) -> dict[str, nn.Parameter]:
        """Return the parameters under their names in a drafter's folder."""
        return {theirs: self.weights[ours] for ours, theirs in CHECKPOINT_NAMES.items()}

    def config(self) -> dict[str, object]:
        """Return the kind's own fields of a drafter's ``config.json``."""
        return {"drafter": "mtp", "norm_offset": 0, "qk_norm": False, "gated_attention": False}


CHECKPOINT_NAMES = {
    "fc": "mtp.fc.weight",
    "embedding_norm": "mtp.pre_fc_norm_embedding.weight",
    "hidden_norm": "mtp.pre_fc_norm_hidden.weight",
    "input_norm": "mtp.layers.0.input_layernorm.weight",
    "q_proj": "mtp.layers.0.self_attn.q_proj.weight",
    "k_proj": "mtp.layers.0.self_attn.k_proj.weight",
    "v_proj": "mtp.layers.0.self_attn.v_proj.weight",
    "o_proj": "mtp.layers.0.self_attn.o_proj.weight",
    "mlp_norm": "mtp.layers.0.post_attention_layernorm.weight",
    "gate_proj": "mtp.layers.0.mlp.gate_proj.weight",
    "up_proj": "mtp.layers.0.mlp.up_proj.weight",
    "down_proj": "mtp.layers.0.mlp.down_proj.weight",
    "norm": "mtp.norm.weight",
}


def chain_mask(columns: int, step: int, device: torch.device) -> Tensor:
    """Return what a step sees, bool[T, (step + 1) · T].

    Math: all of the first step up to its own column, and of every later step its own column only:
          a chain's guesses are seen by nobody else.
    """
    causal = torch.ones(columns, columns, dtype=torch.bool, device=device).tril()
    own = torch.eye(columns, dtype=torch.bool, device=device)
    return torch.cat((causal, *[own] * step), dim=1)
