/// @file
/// A run as one HTML file that makes no request.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::report {

/// How much of a run's output the data may hold, in bytes of the page.
struct ReportLimits {
  std::size_t logs = 1'500'000;        ///< Of all steps together; 0: no log is opened.
  std::size_t failed_log = 64 * 1024;  ///< The end of the log of a step that failed.
  std::size_t log = 8 * 1024;          ///< The end of any other log.
  std::size_t pictures = 2'000'000;    ///< Of all pictures together.
  std::size_t points = 200;            ///< Of one metric.
  std::size_t digits = 12;             ///< Of an artifact's digest.
  bool checks_driver = false;          ///< A running run whose driver is dead has died.
  bool details = true;  ///< All of each step; else what tables and drawings of all steps show.
};

/// Returns the limits with which the report of a run of ten thousand steps has at most 5 MB: logs
/// and pictures share what so many steps leave.
ReportLimits limits_for(std::size_t steps);

/// Returns everything that the page shows: the run, its steps with attempts, logs, outputs and what
/// they needed, metrics and pictures.
nlohmann::json report_data(store::RunStore& store, const store::ArtifactStore& artifacts,
                           const store::RunRecord& run, const ReportLimits& limits);

/// The texts of templates/report.
struct ReportTemplates {
  std::string page, style, script;
};

/// Puts the data into the page. The data cannot end the element that it is in, whatever texts it
/// has, and nothing but the page's own style and script is allowed by its policy.
std::string render_report(const nlohmann::json& data, const ReportTemplates& templates);

}  // namespace pipeline::report
