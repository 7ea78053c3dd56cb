#!/usr/bin/env python3
"""Writes the golden cases of tests/golden/probe_cases/ from reference.py and scales.py, for machines without PyTorch. stored.py describes
the files. The same seed gives the same bytes.
"""
import array
import collections

import torch

import reference
import scales
import stored

GPT = {"preset": "gpt", "vocab": 11, "ctx": 20, "layers": 1}
MSA = {"preset": "msa", "vocab": 11, "ctx": 20, "layers": 1}
SCALES = {"vocab": 11, "ctx": 20, "d": 8, "heads": 4, "ff": 9}
STORED = {  # name: (config, batch, length, lengths of the sequences if they are padded)
    "gpt": ({**GPT, "d": 15, "heads": 3}, 3, 7),
    "gpt_window_untied_no_bias": ({**GPT, "d": 12, "heads": 4, "ff": 17, "layers": 2, "window": 3, "tie": False,
                                   "bias": False}, 1, 19),
    "gpt_not_causal": ({**GPT, "d": 10, "heads": 1, "ff": 13, "causal": False}, 3, 2),
    "msa": ({**MSA, "d": 9, "heads": 3, "ff": 11, "layers": 2}, 3, 7),
    "msa_window_tied_no_bias": ({**MSA, "d": 12, "heads": 4, "window": 1, "tie": True, "bias": False}, 1, 19),
    "msa_one_token": ({**MSA, "d": 10, "heads": 2, "ff": 14, "window": 50}, 1, 1),
    "gpt_padded": ({**GPT, "d": 12, "heads": 2, "ff": 13}, 4, 7, [7, 3, 0, 1]),
    "avgpool_padded": ({**GPT, "d": 9, "ff": 10, "mixer": "avgpool", "pool": 4}, 3, 7, [7, 3, 0]),
    "identity": ({**MSA, "d": 8, "ff": 9, "mixer": "identity"}, 2, 5),
    "classifier_padded": ({"family": "classifier", "vocab": 11, "ctx": 20, "layers": 1, "d": 12, "heads": 3, "ff": 13, "classes": 3},
                          4, 7, [7, 3, 0, 1]),
    "classifier_avgpool": ({"family": "classifier", "vocab": 11, "ctx": 20, "layers": 2, "d": 8, "ff": 9, "mixer": "avgpool"}, 3, 6),
    "dispatcher": ({**MSA, "d": 9, "heads": 3, "ff": 10, "layers": 2, "mixer": "dispatcher"}, 2, 13),
    "dispatcher_shared_heads": ({**GPT, "d": 10, "heads": 2, "ff": 9, "mixer": "dispatcher", "share_heads": True, "mixer_bias": True}, 1, 19),
    "dispatcher_few_levels_padded": ({**GPT, "d": 6, "heads": 1, "ff": 7, "mixer": "dispatcher", "levels": 2, "coef_act": "none"}, 3, 7, [7, 3, 0]),
    "quad_full_window": ({**GPT, "d": 6, "heads": 2, "ff": 7, "mixer": "quad_full", "window": 3}, 2, 7),
    "quad": ({**MSA, "d": 9, "heads": 3, "ff": 10, "mixer": "quad"}, 2, 7),
    "p_only_padded": ({**GPT, "d": 8, "heads": 2, "ff": 9, "mixer": "p_only"}, 4, 7, [7, 3, 0, 1]),
    "metric": ({**GPT, "d": 10, "heads": 2, "ff": 11, "layers": 2, "mixer": "metric"}, 2, 11),
    "metric_values_no_bias": ({**GPT, "d": 9, "heads": 3, "ff": 10, "mixer": "metric", "value_proj": True, "bias": False}, 2, 5),
    "metric_psd_not_causal": ({**GPT, "d": 10, "heads": 2, "ff": 11, "mixer": "metric_psd", "causal": False}, 2, 7),
    "classifier_metric_padded": ({"family": "classifier", "vocab": 11, "ctx": 20, "layers": 1, "d": 6, "heads": 2, "ff": 7, "mixer": "metric"},
                                 3, 6, [6, 2, 0]),
    "classifier_dispatcher": ({"family": "classifier", "vocab": 11, "ctx": 20, "layers": 1, "d": 6, "heads": 2, "ff": 7, "mixer": "dispatcher"},
                              2, 5),
    "topdown": ({**SCALES, "family": "topdown", "scales": [1, 2, 4], "layers": [2, 1, 1]}, 2, 11),
    "topdown_conv_block_padded": ({**SCALES, "family": "topdown", "scales": [1, 3, 6], "layers": [1, 1, 1], "down": "conv", "conv_kernel": 2,
                                   "shift": "block", "loss_from": "first_full", "tie": False}, 3, 19, [19, 10, 4]),
    "topdown_msa_max_short": ({**SCALES, "family": "topdown", "preset": "msa", "scales": [1, 4, 16], "layers": [1, 1, 1], "down": "max",
                               "bias": False}, 2, 7),
    "bottomup": ({**SCALES, "family": "bottomup", "scales": [1, 2, 6], "layers": [1, 2, 1], "down": "conv"}, 2, 15),
    "bottomup_not_chained_padded": ({**SCALES, "family": "bottomup", "scales": [1, 4, 8], "layers": [1, 1, 1], "down": "max", "chain": False},
                                    3, 17, [17, 9, 2]),
    "retina": ({**SCALES, "family": "retina", "scales": [1, 2, 4], "layers": 1, "windows": "0:4, 4:10, 10:20"}, 2, 20),
    "retina_conv_overlap_padded": ({**SCALES, "family": "retina", "scales": [1, 3], "layers": 1, "down": "conv", "windows": [[0, 8], [4, 16]],
                                    "cell_rule": "end", "head_groups": [0, 1, 1, 0]}, 3, 13, [13, 6, 2]),
    "coarse": ({**SCALES, "family": "coarse", "scale": 3, "layers": 1, "down": "conv"}, 2, 14),
    "coarse_padded": ({**SCALES, "family": "coarse", "scale": 2, "layers": 1, "tie": False}, 3, 9, [9, 5, 1]),
    "topdown_bags": ({**SCALES, "family": "topdown", "scales": [1, 2, 4], "layers": [1, 1, 1], "bag_weights": [0.5, 2], "tie": False}, 2, 13),
    "gpt_rms_swiglu_no_bias": ({**GPT, "d": 10, "heads": 2, "ff": 7, "layers": 2, "norm_kind": "rms", "norm_eps": 0.001, "activation": "silu",
                                "gated": True, "bias": False}, 2, 7),
    "msa_rms_relu2": ({**MSA, "d": 9, "heads": 3, "ff": 10, "norm_kind": "rms", "activation": "relu2"}, 2, 5),
    "gpt_eps_geglu_tanh_padded": ({**GPT, "d": 8, "heads": 2, "ff": 5, "norm_eps": 0.3, "activation": "gelu_tanh", "gated": True}, 3, 7, [7, 3, 0]),
    "bottomup_rms_gated": ({**SCALES, "family": "bottomup", "scales": [1, 2, 6], "layers": [1, 1, 1], "norm_kind": "rms", "gated": True}, 2, 13),
    "gpt_qk_norm_padded": ({**GPT, "d": 15, "heads": 3, "ff": 7, "norm_kind": "rms", "norm_eps": 0.05, "qk_norm": True, "window": 5}, 3, 7, [7, 4, 0]),
    "bottomup_llama": ({**SCALES, "family": "bottomup", "preset": "llama", "scales": [1, 2, 6], "layers": [1, 2, 1], "kv_heads": 2, "head_width": 4,
                        "qk_norm": True, "qkv_bias": True, "rope_theta": 30.0}, 2, 13),
    "mixer_per_layer": ({**GPT, "d": 12, "heads": {"dispatcher": 2, "sdp": 3}, "ff": 7, "layers": 4, "mixer": ["dispatcher", "dispatcher", "sdp"]},
                        2, 13),
    "mixer_per_layer_padded": ({**MSA, "d": 8, "heads": 2, "ff": 9, "layers": 3, "mixer": ["metric", "avgpool", "quad_full"], "window": 5}, 3, 7,
                               [7, 3, 0]),
}


def definition_of(config):
    return (scales if config.get("family") in scales.FAMILIES else reference).Model


def yaml_text(config):
    """The `model:` mapping of a run file; the values are numbers, booleans, plain words and lists of numbers."""
    words = {key: str(value).lower() if isinstance(value, bool) else value for key, value in config.items()}
    return "model:\n" + "".join(f"  {key}: {value}\n" for key, value in words.items())


def to_stored(tensor):
    """In f64 and i64, kept exactly, as in stored.py."""
    kind, code = ("F64", "d") if tensor.is_floating_point() else ("I64", "q")
    return kind, list(tensor.shape), array.array(code, tensor.flatten().tolist())


def make_case(config, batch, length, seed, lengths=None):
    """(model as in a run file, {in.NAME, weights.NAME, expected.NAME: tensor}, (weights, ids, targets, lengths))"""
    config = {"family": "decoder", "mixer": "sdp", **config}
    definition = definition_of(config)
    weights = definition.random(config, seed)
    ids, targets = reference.random_batch(config, batch, length, seed + 1)
    lengths = None if lengths is None else torch.tensor(lengths)
    inputs = {"ids": ids, "targets": targets, **({} if lengths is None else {"lengths": lengths})}
    parts = {"in": inputs, "weights": weights, "expected": reference.evaluate(definition(config, weights), ids, targets, lengths)}
    tensors = {f"{part}.{name}": to_stored(tensor) for part, named in parts.items() for name, tensor in named.items()}
    return yaml_text(config), tensors, (weights, ids, targets, lengths)


def main():
    text, files = "# The model of each stored case; stored.py says how the files here belong together.\n", collections.defaultdict(dict)
    for seed, (name, (config, *given)) in enumerate(STORED.items(), start=1):
        model, tensors, _ = make_case(config, *given[:2], 100 * seed, *given[2:])
        text += model.replace("model:", f"{name}:")
        files[config.get("family", "decoder")] |= {f"{name}/{tensor}": value for tensor, value in tensors.items()}
    (stored.FOLDER / "cases.yaml").write_text(text)
    for family, tensors in files.items():
        stored.write_safetensors(stored.FOLDER / f"{family}.safetensors", tensors)


if __name__ == "__main__":
    main()
