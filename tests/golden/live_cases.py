"""The cases that check_probe.py compares with PyTorch: (name, config, batch, length, lengths of the sequences where they are padded)."""
GPT = {"preset": "gpt", "vocab": 13, "ctx": 24, "layers": 2}
MSA = {"preset": "msa", "vocab": 13, "ctx": 24, "layers": 2}
CLASSIFIER = {"family": "classifier", "vocab": 13, "ctx": 24, "layers": 2, "classes": 4}
QUICK = [
    ("gpt d 15", {**GPT, "d": 15, "heads": 3}, 3, 7),
    ("gpt untied, no bias, window 3", {**GPT, "d": 12, "heads": 4, "ff": 17, "tie": False, "bias": False,
                                       "window": 3}, 1, 19),
    ("gpt not causal, 1 head", {**GPT, "d": 10, "heads": 1, "causal": False}, 3, 2),
    ("msa d 15", {**MSA, "d": 15, "heads": 3, "ff": 22}, 3, 7),
    ("msa tied, no bias, window 1", {**MSA, "d": 12, "heads": 4, "tie": True, "bias": False, "window": 1}, 1, 19),
    ("msa one token", {**MSA, "d": 10, "heads": 1}, 1, 1),
    ("gpt lengths 7 3 0", {**GPT, "d": 15, "heads": 3}, 3, 7, [7, 3, 0]),
    ("avgpool", {**GPT, "d": 15, "mixer": "avgpool"}, 2, 7),
    ("identity", {**GPT, "d": 15, "mixer": "identity"}, 2, 7),
    ("classifier lengths 7 3 0", {**CLASSIFIER, "d": 12, "heads": 4}, 3, 7, [7, 3, 0]),
    ("dispatcher", {**MSA, "d": 15, "heads": 3, "mixer": "dispatcher"}, 2, 19),
    ("metric", {**GPT, "d": 15, "heads": 3, "mixer": "metric"}, 2, 7),
]
QUICK += [
    (f"{name} gated {activation}", {**preset, "d": 15, "heads": 3, "ff": 11, "norm_kind": norm, "activation": activation, "gated": gated}, 2, 7)
    for gated, activation, norm, (name, preset) in (
        (True, "silu", "rms", ("gpt", GPT)), (True, "relu", "rms", ("msa", MSA)), (True, "gelu", "layer", ("gpt", GPT)),
        (True, "relu2", "rms", ("gpt", GPT)), (False, "silu", "layer", ("msa", MSA)), (False, "relu2", "rms", ("gpt", GPT)),
        (True, "gelu_tanh", "rms", ("msa", MSA)))
]
QUICK += [("qk_norm", {**GPT, "d": 15, "heads": 3, "qk_norm": True, "window": 3}, 2, 9),
          ("msa qk_norm, not causal, lengths", {**MSA, "d": 10, "heads": 2, "qk_norm": True, "causal": False}, 3, 7, [7, 3, 0])]
LLAMA = {"preset": "llama", "vocab": 13, "ctx": 24, "layers": 2, "ff": 11}
QUICK += [("llama", {**LLAMA, "d": 15, "heads": 3, "head_width": 6}, 2, 9),
          ("llama, groups of two, narrow heads, qk_norm", {**LLAMA, "d": 15, "heads": 4, "kv_heads": 2, "head_width": 2, "qk_norm": True}, 2, 19),
          ("llama, one key head, part of a head turns, biases on q, k and v, untied",
           {**LLAMA, "d": 12, "heads": 3, "kv_heads": 1, "head_width": 10, "rope_fraction": 0.65, "qkv_bias": True, "tie": False, "window": 5}, 3, 13),
          ("llama, linear scaling, lengths", {**LLAMA, "d": 12, "heads": 2, "kv_heads": 1, "rope_scaling": "linear", "rope_factor": 3.5}, 3, 7, [7, 3, 0]),
          ("llama, scaled by wavelength", {**LLAMA, "d": 24, "heads": 2, "rope_theta": 50.0, "rope_scaling": "llama3", "rope_factor": 5.0,
                                           "rope_trained_ctx": 40}, 2, 23),
          ("classifier, rope, groups", {**CLASSIFIER, "d": 12, "heads": 6, "kv_heads": 3, "positions": "rope", "norm_kind": "rms"}, 4, 7, [7, 3, 0, 1]),
          ("msa, groups, no rope", {**MSA, "d": 10, "heads": 4, "kv_heads": 2, "head_width": 5}, 2, 7)]
SCALES = {"vocab": 13, "ctx": 24, "d": 12, "heads": 4, "ff": 17}
QUICK += [
    ("topdown", {**SCALES, "family": "topdown", "scales": [1, 2, 6], "layers": [1, 2, 1]}, 2, 17),
    ("bottomup", {**SCALES, "family": "bottomup", "scales": [1, 2, 6], "layers": [1, 2, 1]}, 2, 17),
    ("retina", {**SCALES, "family": "retina", "scales": [1, 2, 6], "layers": 2, "windows": "0:4, 4:12, 12:24"}, 2, 23),
    ("coarse", {**SCALES, "family": "coarse", "scale": 3, "layers": 2, "down": "conv"}, 2, 17),
]
QUICK += [
    ("dispatcher and sdp", {**GPT, "d": 12, "heads": {"sdp": 3, "dispatcher": 2}, "mixer": ["dispatcher", "sdp"], "layers": 3}, 2, 17),
    ("every mixer", {**GPT, "d": 12, "heads": 3, "ff": 7, "layers": 10, "mixer": ["identity", "sdp", "dispatcher", "quad_full", "quad", "p_only",
                                                                                 "metric", "metric_psd", "avgpool"]}, 2, 11),
    ("rope in the layers of sdp, lengths", {**GPT, "preset": "llama", "d": 12, "heads": 2, "ff": 7, "layers": 3, "kv_heads": 1,
                                            "mixer": ["dispatcher", "sdp"]}, 3, 7, [7, 3, 0]),
    ("classifier, two mixers", {**CLASSIFIER, "d": 12, "heads": 2, "mixer": ["sdp", "avgpool"]}, 3, 7, [7, 3, 0]),
]
CELLS = {**SCALES, "preset": "llama", "kv_heads": 2, "head_width": 4}
QUICK += [
    ("topdown, llama", {**CELLS, "family": "topdown", "scales": [1, 2, 6], "layers": [1, 2, 1]}, 2, 17),
    ("topdown, llama, qk_norm, biases, lengths", {**CELLS, "family": "topdown", "scales": [1, 3], "layers": [1, 1], "qk_norm": True, "qkv_bias": True,
                                                  "rope_theta": 30.0}, 3, 20, [20, 7, 0]),
    ("bottomup, llama", {**CELLS, "family": "bottomup", "scales": [1, 2, 6], "layers": [1, 2, 1]}, 2, 17),
    ("bottomup, llama, qk_norm, biases, lengths", {**CELLS, "family": "bottomup", "scales": [1, 3], "layers": [1, 1], "qk_norm": True, "qkv_bias": True,
                                                   "rope_fraction": 0.5, "down": "conv"}, 3, 20, [20, 7, 0]),
    ("coarse, llama, half of a head turns", {**CELLS, "family": "coarse", "scale": 3, "layers": 2, "rope_fraction": 0.5}, 2, 23),
]
FULL = QUICK + [
    ("topdown, one scale", {**SCALES, "family": "topdown", "scales": [1], "layers": [2]}, 2, 7),
    ("topdown msa, conv over three cells, block, lengths", {**SCALES, "family": "topdown", "preset": "msa", "scales": [1, 4], "layers": [1, 1],
                                                           "down": "conv", "conv_kernel": 3, "shift": "block"}, 3, 21, [21, 11, 3]),
    ("topdown, no bias, untied, long", {**SCALES, "family": "topdown", "ctx": 140, "scales": [1, 4, 64], "layers": [1, 1, 1], "bias": False,
                                        "tie": False}, 2, 131),
    ("topdown msa, bags, conv, lengths", {**SCALES, "family": "topdown", "preset": "msa", "scales": [1, 2, 4], "layers": [1, 1, 1], "down": "conv",
                                          "bag_weights": [0.5, 2]}, 3, 21, [21, 11, 3]),
    ("topdown, bags, shorter than every cell", {**SCALES, "family": "topdown", "scales": [1, 4, 8], "layers": [1, 1, 1], "bag_weights": [1, 1]}, 3, 3),
    ("topdown, shorter than every cell", {**SCALES, "family": "topdown", "scales": [1, 4, 8], "layers": [1, 1, 1], "loss_from": "first_full"}, 3, 3),
    ("topdown, a scale beyond ctx", {**SCALES, "family": "topdown", "scales": [1, 4, 64], "layers": [1, 1, 1], "down": "conv"}, 3, 24),
    ("bottomup msa, lengths", {**SCALES, "family": "bottomup", "preset": "msa", "scales": [1, 3], "layers": [1, 1], "down": "max"}, 3, 20, [20, 7, 0]),
    ("bottomup, no bias, long, not chained", {**SCALES, "family": "bottomup", "ctx": 140, "scales": [1, 2, 8], "layers": [1, 1, 1], "bias": False,
                                              "chain": False, "down": "conv"}, 2, 131),
    ("bottomup, as many scales as heads", {**SCALES, "family": "bottomup", "scales": [1, 2, 4, 8, 16], "layers": [1, 1, 1, 1, 1]}, 2, 24),
    ("retina, no windows", {**SCALES, "family": "retina", "scales": [1, 4], "layers": 1}, 2, 22),
    ("retina, one scale", {**SCALES, "family": "retina", "scales": [1], "layers": 1, "windows": [[2, 9]]}, 2, 22),
    ("retina msa, groups, lengths", {**SCALES, "family": "retina", "preset": "msa", "scales": [1, 2, 4], "layers": 2, "windows": "0:8, 4:16, 8:24",
                                     "cell_rule": "end", "head_groups": [2, 0, 1, 0]}, 3, 22, [22, 9, 1]),
    ("retina, groups without a scale", {**SCALES, "family": "retina", "scales": [1, 2, 4], "layers": 1, "down": "conv", "head_groups": [0, 0, 2, 2]}, 2, 13),
    ("retina, long, no bias", {**SCALES, "family": "retina", "ctx": 140, "scales": [1, 4, 16], "layers": 1, "bias": False,
                               "windows": "0:16, 16:64, 64:140"}, 2, 131),
    ("coarse msa, max", {**SCALES, "family": "coarse", "preset": "msa", "scale": 4, "layers": 1, "down": "max"}, 3, 23),
    ("coarse, shorter than a cell", {**SCALES, "family": "coarse", "scale": 4, "layers": 1}, 3, 3),
    ("coarse, cells of one token, lengths", {**SCALES, "family": "coarse", "scale": 1, "layers": 1, "tie": False}, 3, 9, [9, 3, 0]),
    ("avgpool window 4", {**GPT, "d": 11, "mixer": "avgpool", "pool": 4}, 3, 19),
    ("avgpool wider than the text", {**GPT, "d": 11, "mixer": "avgpool", "pool": 9}, 1, 5),
    ("avgpool both sides, lengths", {**GPT, "d": 11, "mixer": "avgpool", "causal": False}, 3, 7, [7, 3, 0]),
    ("avgpool of one", {**MSA, "d": 10, "mixer": "avgpool", "pool": 1}, 2, 3),
    ("msa avgpool, lengths", {**MSA, "d": 10, "mixer": "avgpool", "pool": 5}, 3, 9, [9, 1, 4]),
    ("msa identity, no bias", {**MSA, "d": 10, "mixer": "identity", "bias": False}, 2, 7),
    ("dispatcher, one head", {**GPT, "d": 11, "heads": 1, "mixer": "dispatcher"}, 3, 7),
    ("dispatcher, one shared head, biases", {**MSA, "d": 7, "heads": 1, "mixer": "dispatcher", "share_heads": True, "mixer_bias": True}, 1, 5),
    ("dispatcher, 9 levels", {**MSA, "d": 10, "heads": 5, "mixer": "dispatcher", "levels": 9}, 2, 19),
    ("dispatcher, one token", {**GPT, "d": 8, "heads": 2, "mixer": "dispatcher"}, 3, 1),
    ("dispatcher, lengths", {**GPT, "d": 8, "heads": 2, "mixer": "dispatcher", "bias": False}, 4, 7, [7, 3, 0, 1]),
    ("dispatcher, full ctx", {**MSA, "d": 8, "heads": 1, "mixer": "dispatcher"}, 2, 24),
    ("dispatcher, long", {**MSA, "d": 38, "heads": 1, "mixer": "dispatcher", "ctx": 140}, 2, 131),
    *((f"{mixer}, {what}", {**GPT, "d": 15, "heads": 3, "mixer": mixer, **extra}, 3, 7, *lengths)
      for mixer in ("quad_full", "quad", "p_only", "metric", "metric_psd")
      for what, extra, *lengths in (("window 3", {"window": 3}), ("not causal, no bias", {"causal": False, "bias": False}),
                                    ("lengths", {}, [7, 3, 0]), ("one head", {"heads": 1, "preset": "msa"}))),
    *((f"{mixer}, values", {**MSA, "d": 12, "heads": 2, "mixer": mixer, "value_proj": True}, 2, 11, [11, 4])
      for mixer in ("quad", "p_only", "metric", "metric_psd")),
    ("metric, one token", {**GPT, "d": 6, "heads": 6, "mixer": "metric"}, 1, 1),
    ("metric, long, wide heads", {**GPT, "d": 72, "heads": 1, "mixer": "metric", "ctx": 140, "layers": 1}, 1, 131),
    *((f"classifier {mixer}", {**CLASSIFIER, "d": 12, "heads": 3, "mixer": mixer}, 3, 7, [7, 3, 0])
      for mixer in ("dispatcher", "quad_full", "quad", "p_only", "metric", "metric_psd")),
    ("classifier, window 3, no bias", {**CLASSIFIER, "d": 15, "heads": 3, "window": 3, "bias": False}, 4, 19, [19, 2, 7, 1]),
    ("classifier, causal", {**CLASSIFIER, "d": 15, "heads": 3, "causal": True}, 4, 7),
    ("classifier avgpool, lengths", {**CLASSIFIER, "d": 9, "mixer": "avgpool", "pool": 5}, 4, 7, [7, 3, 0, 1]),
    ("classifier identity, two classes", {**CLASSIFIER, "d": 9, "mixer": "identity", "classes": 2}, 3, 7, [7, 3, 2]),
    ("classifier msa, one token", {**CLASSIFIER, "preset": "msa", "d": 12, "heads": 2}, 1, 1),
    ("gpt one token", {**GPT, "d": 12, "heads": 4}, 1, 1),
    ("gpt two tokens", {**GPT, "d": 10, "heads": 1, "ff": 7}, 1, 2),
    ("gpt ff narrower than d", {**GPT, "d": 15, "heads": 5, "ff": 4, "layers": 3}, 1, 7),
    ("gpt full ctx", {**GPT, "d": 14, "heads": 2, "layers": 1}, 3, 24),
    ("gpt long", {**GPT, "d": 24, "heads": 2, "vocab": 97, "ctx": 140, "ff": 131}, 2, 131),
    ("gpt long, window 65, wide head", {**GPT, "d": 72, "heads": 1, "ctx": 140, "window": 65, "layers": 1}, 1, 131),
    ("gpt long, not causal", {**GPT, "d": 26, "heads": 2, "ctx": 140, "causal": False, "layers": 1}, 1, 131),
    ("msa not causal", {**MSA, "d": 12, "heads": 4, "causal": False}, 3, 7),
    ("msa long", {**MSA, "d": 24, "heads": 2, "vocab": 97, "ctx": 140}, 2, 131),
    ("msa lengths 1 18, window 3", {**MSA, "d": 12, "heads": 4, "window": 3}, 2, 19, [1, 18]),
    ("gpt long, lengths 130 64 65 1", {**GPT, "d": 10, "heads": 2, "ctx": 140, "layers": 1}, 4, 131,
     [130, 64, 65, 1]),
    ("gpt long, lengths, not causal", {**GPT, "d": 10, "heads": 2, "ctx": 140, "causal": False}, 3, 131,
     [131, 70, 0]),
]


def sweep():
    """(name, config, batch, length) of every variant at the lengths 1 to 40."""
    base = {"vocab": 11, "ctx": 40, "d": 12, "heads": 4, "ff": 13}
    downs = [{"down": "avg"}, {"down": "max"}, {"down": "conv"}, {"down": "conv", "conv_kernel": 2}]
    stacks = {**base, "scales": [1, 3, 6, 24], "layers": [1, 1, 1, 1]}
    variants = [{**stacks, "family": "topdown", **down, "shift": shift, "loss_from": start}
                for down in downs for shift, start in (("tight", 0), ("block", "first_full"))]
    variants += [{**stacks, "family": "topdown", "shift": shift, "loss_from": start, "bag_weights": [0.3, 1.5, 0.7]}
                 for shift, start in (("tight", "first_full"), ("block", 0))]
    variants += [{**stacks, "family": "bottomup", **down, "chain": chain} for down in downs for chain in (True, False)]
    variants += [{**base, "family": "retina", "scales": [1, 4, 12], "layers": 1, **down, "windows": windows, "cell_rule": rule}
                 for down in downs for windows in ("0:6, 6:20, 20:40", "0:16, 8:24, 12:30") for rule in ("inside", "end")]
    variants += [{**base, "family": "coarse", "scale": 5, "layers": 1, **down} for down in downs]
    for config in variants:
        said = ", ".join(str(config[key]) for key in ("family", "down", "conv_kernel", "shift", "chain", "windows", "cell_rule", "bag_weights") if key in config)
        for length in range(1, 41):
            yield f"{said}, {length} tokens", config, 1 + length % 3, length
