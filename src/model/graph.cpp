#include "model/graph.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <stdexcept>

namespace pipeline::model {

Graph::Graph(const std::vector<std::vector<StepIndex>>& needs)
    : first_need_{0}, first_needed_by_(needs.size() + 1, 0) {
  first_need_.reserve(needs.size() + 1);
  for (const auto& list : needs) {
    const auto first = static_cast<std::ptrdiff_t>(needs_.size());
    needs_.insert(needs_.end(), list.begin(), list.end());
    std::sort(needs_.begin() + first, needs_.end());
    needs_.erase(std::unique(needs_.begin() + first, needs_.end()), needs_.end());
    first_need_.push_back(static_cast<std::uint32_t>(needs_.size()));
  }
  for (const auto need : needs_) {
    if (need >= needs.size())
      throw std::out_of_range("a step needs step " + std::to_string(need) + " of " +
                              std::to_string(needs.size()));
    ++first_needed_by_[need + 1];
  }
  std::partial_sum(first_needed_by_.begin(), first_needed_by_.end(), first_needed_by_.begin());
  needed_by_.resize(needs_.size());
  auto next = first_needed_by_;
  for (StepIndex step = 0; step < size(); ++step) {
    for (const auto need : this->needs(step)) needed_by_[next[need]++] = step;
  }
}

std::span<const StepIndex> Graph::needs(StepIndex step) const {
  return std::span(needs_).subspan(first_need_[step], first_need_[step + 1] - first_need_[step]);
}

std::span<const StepIndex> Graph::needed_by(StepIndex step) const {
  return std::span(needed_by_)
      .subspan(first_needed_by_[step], first_needed_by_[step + 1] - first_needed_by_[step]);
}

std::optional<std::vector<StepIndex>> Graph::topological_order() const {
  std::vector<std::uint32_t> missing(size());
  std::priority_queue<StepIndex, std::vector<StepIndex>, std::greater<>> ready;
  for (StepIndex step = 0; step < size(); ++step) {
    missing[step] = static_cast<std::uint32_t>(needs(step).size());
    if (missing[step] == 0) ready.push(step);
  }
  std::vector<StepIndex> order;
  order.reserve(size());
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const auto step : needed_by(order.back())) {
      if (--missing[step] == 0) ready.push(step);
    }
  }
  if (order.size() < size()) return std::nullopt;
  return order;
}

std::vector<StepIndex> Graph::find_cycle() const {
  enum class Mark : std::uint8_t { unseen, on_path, clear };
  std::vector<Mark> marks(size(), Mark::unseen);
  struct Place {
    StepIndex step;
    std::size_t next;  ///< Index of the next dependency to look at.
  };
  std::vector<Place> path;
  for (StepIndex start = 0; start < size(); ++start) {
    if (marks[start] != Mark::unseen) continue;
    path.push_back({start, 0});
    marks[start] = Mark::on_path;
    while (!path.empty()) {
      auto& place = path.back();
      if (place.next == needs(place.step).size()) {
        marks[place.step] = Mark::clear;
        path.pop_back();
        continue;
      }
      const auto need = needs(place.step)[place.next++];
      if (marks[need] == Mark::on_path) {
        std::vector<StepIndex> cycle;
        for (const auto& p : path) cycle.push_back(p.step);
        cycle.erase(cycle.begin(), std::find(cycle.begin(), cycle.end(), need));
        // The cycle is reported from its first step in the file, independently of the order of the
        // search.
        std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
        return cycle;
      }
      if (marks[need] == Mark::unseen) {
        marks[need] = Mark::on_path;
        path.push_back({need, 0});
      }
    }
  }
  return {};
}

Scheduler::Scheduler(const Graph& graph, std::vector<bool> waits_for_ends)
    : graph_(graph),
      waits_for_ends_(std::move(waits_for_ends)),
      urgency_(graph.size()),
      position_(graph.size()),
      missing_(graph.size()),
      state_(graph.size(), State::waiting),
      remaining_(graph.size()) {
  waits_for_ends_.resize(graph.size());
  const auto order = graph.topological_order();
  if (!order) throw std::invalid_argument("a graph with a cycle cannot be scheduled");
  std::vector<std::uint32_t> behind(graph.size(), 0);
  for (auto i = order->size(); i-- > 0;) {
    const auto step = (*order)[i];
    position_[step] = static_cast<std::uint32_t>(i);
    for (const auto next : graph.needed_by(step))
      behind[step] = std::max(behind[step], behind[next] + 1);
  }
  std::vector<StepIndex> by_urgency(graph.size());
  std::iota(by_urgency.begin(), by_urgency.end(), 0U);
  std::stable_sort(by_urgency.begin(), by_urgency.end(),
                   [&](StepIndex a, StepIndex b) { return behind[a] > behind[b]; });
  for (std::uint32_t i = 0; i < by_urgency.size(); ++i) urgency_[by_urgency[i]] = i;
  for (StepIndex step = 0; step < graph.size(); ++step) {
    missing_[step] = static_cast<std::uint32_t>(graph.needs(step).size());
    if (missing_[step] == 0) make_ready(step);
  }
}

void Scheduler::make_ready(StepIndex step) {
  state_[step] = State::ready;
  ++ready_count_;
  heap_.emplace_back(urgency_[step], step);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

std::optional<StepIndex> Scheduler::take() {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const auto step = heap_.back().second;
    heap_.pop_back();
    if (state_[step] != State::ready) continue;
    state_[step] = State::running;
    --ready_count_;
    ++running_;
    return step;
  }
  return std::nullopt;
}

void Scheduler::put_back(StepIndex step) {
  if (state_[step] != State::running) return;
  --running_;
  make_ready(step);
}

void Scheduler::grow(StepIndex barrier, const std::vector<std::vector<StepIndex>>& needs,
                     const std::vector<bool>& waits_for_ends) {
  const auto first = static_cast<StepIndex>(state_.size());
  const auto size = first + needs.size();
  further_.resize(size);
  urgency_.resize(size, urgency_[barrier]);
  position_.resize(size, position_[barrier]);
  missing_.resize(size);
  waits_for_ends_.insert(waits_for_ends_.end(), waits_for_ends.begin(), waits_for_ends.end());
  waits_for_ends_.resize(size);
  state_.resize(size, State::waiting);
  remaining_ += needs.size();
  if (state_[barrier] == State::ready) --ready_count_;
  if (state_[barrier] == State::running) --running_;
  state_[barrier] = State::waiting;
  waits_for_ends_[barrier] = true;
  missing_[barrier] += static_cast<std::uint32_t>(needs.size()) + 1;
  for (StepIndex step = first; step < size; ++step) {
    further_[step].push_back(barrier);
    for (const auto need : needs[step - first]) {
      if (state_[need] == State::gone) continue;
      further_[need].push_back(step);
      ++missing_[step];
    }
    if (missing_[step] == 0) make_ready(step);
  }
  count_ended_dependency(barrier);  // Undoes the 1 above; without new steps the barrier is ready.
}

/// Calls `use` with each step that depends on this one.
template <class Use>
void Scheduler::for_each_dependent(StepIndex step, Use use) {
  if (step < graph_.size())
    for (const auto next : graph_.needed_by(step)) use(next);
  if (step < further_.size())
    for (const auto next : further_[step]) use(next);
}

void Scheduler::mark_gone(StepIndex step) {
  if (state_[step] == State::ready) --ready_count_;
  if (state_[step] == State::running) --running_;
  state_[step] = State::gone;
  --remaining_;
}

void Scheduler::mark_succeeded(StepIndex step) {
  if (state_[step] == State::gone) return;
  mark_gone(step);
  for_each_dependent(step, [&](StepIndex next) { count_ended_dependency(next); });
}

/// Counts a dependency of the step that has ended.
void Scheduler::count_ended_dependency(StepIndex step) {
  if (--missing_[step] == 0 && state_[step] == State::waiting) make_ready(step);
}

std::vector<StepIndex> Scheduler::mark_failed(StepIndex step) {
  if (state_[step] == State::gone) return {};
  mark_gone(step);
  std::vector<StepIndex> lost;
  const auto lose_dependents = [&](StepIndex of) {
    for_each_dependent(of, [&](StepIndex next) {
      if (state_[next] == State::gone) return;
      if (waits_for_ends_[next]) return count_ended_dependency(next);
      mark_gone(next);
      lost.push_back(next);
    });
  };
  lose_dependents(step);
  for (std::size_t i = 0; i < lost.size(); ++i) lose_dependents(lost[i]);
  std::sort(lost.begin(), lost.end(),
            [&](StepIndex a, StepIndex b) { return position_[a] < position_[b]; });
  return lost;
}

}  // namespace pipeline::model
