#include <iostream>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

int main() {
  pipeline::PipelineSpec spec{.name = "consumer",
                              .steps = {{.name = "train", .outputs = {{"model", "model"}}}}};
  std::cout << spec.name << " " << spec.steps.size() << " "
            << pipeline::to_string(pipeline::StepStatus::cached) << "\n";
}
