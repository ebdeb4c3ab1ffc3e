/// @file
/// Sets parameters to the values of `--param` and of a file of parameters.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <pipeline/json.hpp>

#include "settings/decode.hpp"
#include "spec/include.hpp"
#include "spec/read_step.hpp"

namespace pipeline::spec {

/// Sets the parameters of files and steps to the values of options. Call the functions in the order
/// of their declarations: the first apply() for each file, an including file before the files that
/// it includes.
class ParameterOptions {
 public:
  /// Keeps a reference to the diagnostics.
  /// @param places where a file has the options, by name; others are of `--param`
  ParameterOptions(const std::map<std::string, std::string>& options,
                   const std::map<std::string, std::string>& places,
                   settings::Diagnostics& diagnostics)
      : options_(options), places_(places), diagnostics_(diagnostics) {}

  /// Sets the parameters of a file: `NAME` in the pipeline's own file, `PREFIX.NAME` in included
  /// ones.
  void apply(FileScope& scope);
  /// Sets the parameters of single steps, `STEP.NAME`.
  void apply(std::vector<ReadStep>& steps);
  /// Reports each option that names no parameter. The matrices of the steps must have been read.
  void report_unknown(const Defaults& defaults, const std::vector<ReadStep>& steps);

 private:
  using Parameters = std::map<std::string, Json>;

  /// Returns the option as the user wrote it: `--param NAME`, or `few.yaml:2:1: NAME`.
  std::string written(const std::string& option) const;
  void spread(const Parameters& of_pipeline);
  bool set(Parameters& parameters, const std::string& name, const std::string& option,
           std::string text);
  void report_unknown(const std::string& name, const Defaults& defaults,
                      const std::vector<ReadStep>& steps);

  std::map<std::string, std::string> options_, places_;
  std::set<std::string> taken_;  ///< Options that name a parameter.
  settings::Diagnostics& diagnostics_;
};

}  // namespace pipeline::spec
