// The negative log likelihood of every single token, where an evaluation tells only their mean.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"

namespace ricci {

// Of every target of a batch, row by row: -log p(target) in nats; NaN where the target is -1. The logits are those of every position: what
// the loss leaves out (model.loss_from) is told, too. Nothing is recorded, dropout is off.
// Errors: a classifier, a coarse model; a target outside of the vocabulary.
std::vector<double> token_nats(const Model& model, const Inputs& inputs);

// The first position of a sequence of `context` tokens that the model's loss counts.
int64_t first_scored(const Model& model, int64_t context);

// How many sequences of `context` tokens to compute at a time, so that their logits are not more than 2^25 numbers: 1 .. 32.
int64_t rows_at_once(const Model& model, int64_t context);

// Of the tokens ids[first], ids[first + 1] ... of one text, 0 < first. Where the text is longer than `context`, it is read in windows each
// of which goes on for half of the context: a token has that much or more in front of it, or all that there is. Error: first outside of 1
// .. the length of the text.
std::vector<double> nats_of_text(const Model& model, std::span<const int64_t> ids, int64_t first, int64_t context, Device device);

}  // namespace ricci
