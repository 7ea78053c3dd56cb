#include "autograd/completion.h"

#include <algorithm>
#include <utility>

namespace ricci {
namespace {

thread_local ParametersRead* reading = nullptr;
thread_local Completion* telling = nullptr;

}  // namespace

ParametersRead::ParametersRead() : outer_(std::exchange(reading, this)) {}

ParametersRead::~ParametersRead() {
  reading = outer_;
  for (const Parameter* p : all_)
    if (outer_) outer_->add(*p);
}

void ParametersRead::note(const Parameter& p) {
  if (reading && p.value && !p.frozen) reading->add(p);
}

void ParametersRead::add(const Parameter& p) {
  if (std::find(all_.begin(), all_.end(), &p) == all_.end()) all_.push_back(&p);
}

Completion::Completion(const Tape& tape, GradientListener* listener) : listener_(listener), outer_(telling) {
  if (!listener) return;
  telling = this;
  std::unordered_set<const Parameter*> seen;
  size_t number = 0;
  tape.each_node([&](const Node& node) {
    for (int input : node.inputs)
      if (const Parameter* p = tape.parameter_at(input); p && seen.insert(p).second) uses_.push_back({number, p});
    ++number;
  });
}

Completion::~Completion() { telling = outer_; }

void Completion::left(size_t node) {
  for (; !uses_.empty() && uses_.back().node == node; uses_.pop_back()) {
    told_.insert(uses_.back().parameter);
    listener_->completed(*uses_.back().parameter);
  }
}

bool Completion::has_told(const Parameter* p) { return telling && telling->told_.contains(p); }

}  // namespace ricci
