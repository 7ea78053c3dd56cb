// What nanoGPT and Hugging Face's transformers call our keys.
#pragma once
#include <string_view>

namespace ricci::apps {

struct OtherName {
  std::string_view there, here;
};

inline constexpr OtherName kOtherNames[] = {
    // nanoGPT: train.py and model.py
    {"learning_rate", "lr"},
    {"max_iters", "steps"},
    {"lr_decay_iters", "steps"},
    {"warmup_iters", "warmup"},
    {"decay_lr", "schedule"},
    {"grad_clip", "clip"},
    {"batch_size", "batch"},
    {"gradient_accumulation_steps", "accumulation"},
    {"eval_interval", "eval_every"},
    {"eval_iters", "eval_batches"},
    {"log_interval", "log_every"},
    {"init_from", "init"},
    {"out_dir", "name"},
    {"wandb_run_name", "name"},
    {"dataset", "data"},
    {"dtype", "precision"},
    {"block_size", "model.ctx"},
    {"n_layer", "model.layers"},
    {"n_head", "model.heads"},
    {"n_embd", "model.d"},
    {"bias", "model.bias"},
    {"dropout", "model.dropout"},
    {"vocab_size", "model.vocab"},
    // transformers: TrainingArguments and configurations of models
    {"max_steps", "steps"},
    {"warmup_steps", "warmup"},
    {"lr_scheduler_type", "schedule"},
    {"max_grad_norm", "clip"},
    {"per_device_train_batch_size", "batch"},
    {"eval_steps", "eval_every"},
    {"logging_steps", "log_every"},
    {"save_steps", "checkpoint_every"},
    {"save_total_limit", "keep_checkpoints"},
    {"output_dir", "name"},
    {"adam_beta1", "beta1"},
    {"adam_beta2", "beta2"},
    {"adam_epsilon", "eps"},
    {"optim", "optimizer"},
    {"early_stopping_patience", "patience"},
    {"gradient_checkpointing", "recompute"},
    {"hidden_size", "model.d"},
    {"d_model", "model.d"},
    {"num_hidden_layers", "model.layers"},
    {"num_layers", "model.layers"},
    {"num_attention_heads", "model.heads"},
    {"num_heads", "model.heads"},
    {"intermediate_size", "model.ff"},
    {"n_inner", "model.ff"},
    {"n_positions", "model.ctx"},
    {"n_ctx", "model.ctx"},
    {"max_position_embeddings", "model.ctx"},
    {"seq_len", "context"},
    {"seq_length", "context"},
    {"sequence_length", "context"},
    {"max_seq_length", "context"},
    {"context_length", "model.ctx"},
    {"model_type", "model.family"},
    {"tie_embeddings", "model.tie"},
    {"tie_word_embeddings", "model.tie"},
    {"attention_dropout", "model.dropout"},
    {"save_every", "checkpoint_every"},
    {"save_interval", "checkpoint_every"},
    {"input", "data"},
    {"train_file", "data"},
    {"validation_file", "validation"},
    {"num_labels", "model.classes"},
};

// Empty: neither of them has such a key.
constexpr std::string_view own_name(std::string_view there) {
  for (const OtherName& name : kOtherNames)
    if (name.there == there) return name.here;
  return {};
}

}  // namespace ricci::apps
