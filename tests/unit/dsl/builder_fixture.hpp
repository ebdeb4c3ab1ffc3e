/// @file
/// Shared parts of the tests of declared pipelines.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "dsl/builder.hpp"
#include "spec/pipeline_file.hpp"
#include "support/described.hpp"

namespace pipeline {

class Builder : public testing::Test {
 protected:
  PipelineSpec from_yaml(const std::string& text) {
    return spec::parse(text, folder_.path() / "pipeline.yaml");
  }
  std::string error_of(const Pipeline& pipeline,
                       const std::map<std::string, std::string>& parameters = {}) {
    try {
      dsl::build(pipeline, parameters);
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "no error";
  }
  core::TemporaryFolder folder_;
};

}  // namespace pipeline
