/// @file
/// Reads the metrics in an output that is marked with `metrics: true`.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "store/metrics.hpp"

namespace pipeline::engine {

/// The metrics in the order of the file, without times.
using FileMetrics = std::vector<std::pair<std::string, store::MetricPoint>>;

/// Returns the numbers of a JSON file, named by their path (`test.accuracy`), or of a CSV file,
/// named by their column. A list of numbers or a column is a series, whose points are numbered from
/// 0, or by a column `step`, `epoch` or `iteration`. Other values are left out. Python's NaN and
/// Infinity are numbers. Throws ContentError for a file that is neither JSON nor CSV, is larger
/// than 16 MiB, or has no number.
/// @param name the output's file name, whose extension tells the format
FileMetrics read_metric_file(const std::filesystem::path& file, const std::filesystem::path& name);

}  // namespace pipeline::engine
