/// @file
/// Stores Eigen's matrices as NumPy arrays, which `numpy.load(path)` reads.
#pragma once

#include <Eigen/Dense>
#include <pipeline/pipeline.hpp>

template <class Scalar, int Rows, int Columns>
struct pipeline::Codec<Eigen::Matrix<Scalar, Rows, Columns>> {
  using Matrix = Eigen::Matrix<Scalar, Rows, Columns>;
  using RowByRow = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic,
                                 Eigen::RowMajor>;  // the order of elements in the file
  static constexpr std::string_view extension = ".npy";

  static void save(const Matrix& matrix, const std::string& to) {
    pipeline::Array<Scalar> array(
        {static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols())});
    Eigen::Map<RowByRow>(array.data(), matrix.rows(), matrix.cols()) = matrix;
    array.save(to);
  }
  static Matrix load(const std::string& from) {
    const auto array = pipeline::Array<Scalar>::map(from);
    return Eigen::Map<const RowByRow>(array.data(), static_cast<Eigen::Index>(array.shape().at(0)),
                                      static_cast<Eigen::Index>(array.shape().at(1)));
  }
};
