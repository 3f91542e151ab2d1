// Rotation against numbers of the paper's own code.
#define BOOST_TEST_NO_MAIN
#define BOOST_TEST_MODULE rotary_parity
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>
import cape;

#include "parity.hpp"

using cape::Layout;
using cape::Matrix;
using cape::MatrixView;
using cape::Run;

namespace {

struct Case {
  std::string name;
  std::int64_t batch, length, heads, width, offset;
  double c;
};

constexpr double quarter = std::numbers::pi / 4;

} // namespace

// There q and k are batch x length x heads x width and e is shared by the heads. The first tokens
// of d_offset3 have no position: the code makes them 0, ours would be given angles of 0.
BOOST_AUTO_TEST_CASE(queries_and_keys_are_turned_as_by_the_papers_code) {
  const auto numbers = test::read_parity("rotary/rotary.safetensors");
  double worst = 0;
  for (const Case& c : {Case{"a.", 2, 7, 3, 10, 0, quarter},
                        {"b.", 1, 65, 2, 64, 0, quarter},
                        {"c.", 1, 1, 1, 2, 0, quarter},
                        {"d_offset3.", 2, 8, 2, 6, 3, quarter},
                        {"e_c1p3.", 1, 5, 2, 8, 0, 1.3}})
    for (const std::string which : {"q", "k"}) {
      const std::vector<double>&e = numbers.at(c.name + "e_" + which),
            &x = numbers.at(c.name + which), &expected = numbers.at(c.name + which + "_rot");
      const std::int64_t turned = c.length - c.offset, pairs = c.width / 2, row = c.heads * c.width;
      std::vector<double> angles(e);
      for (double& a : angles) a *= c.c;
      for (std::int64_t b = 0; b < c.batch; ++b) {
        const MatrixView phi{angles.data() + b * turned * pairs, turned, pairs, pairs,
                             Layout::row_major};
        for (std::int64_t h = 0; h < c.heads; ++h) {
          const std::int64_t first = (b * c.length + c.offset) * row + h * c.width;
          const Matrix y =
              cape::rotate({x.data() + first, turned, c.width, row, Layout::row_major}, phi);
          for (std::int64_t i = 0; i < turned; ++i)
            for (std::int64_t j = 0; j < c.width; ++j)
              worst = std::max(
                  worst,
                  std::fabs(y(i, j) - expected[static_cast<std::size_t>(first + i * row + j)]));
        }
        // The same by rows of a transformer, whose pairs of a head each have an angle.
        Run run;
        std::vector<double> rows(x.begin() + (b * c.length + c.offset) * row,
                                 x.begin() + (b + 1) * c.length * row),
            cosine, sine;
        std::vector<std::int32_t> index;
        for (std::int64_t i = 0; i < turned; ++i) {
          index.push_back(static_cast<std::int32_t>(i));
          for (std::int64_t j = 0; j < row / 2; ++j) {
            cosine.push_back(std::cos(phi(i, j % pairs)));
            sine.push_back(std::sin(phi(i, j % pairs)));
          }
        }
        cape::layers::turn_rows<double>(rows, index, {row / 2, cosine, sine}, false, run);
        worst = std::max(worst, test::largest_difference(
                                    rows, {expected.begin() + (b * c.length + c.offset) * row,
                                           expected.begin() + (b + 1) * c.length * row}));
      }
    }
  BOOST_TEST_MESSAGE("rotation: " << worst);
  BOOST_TEST(worst < 1e-14);
}

int main(int argc, char* argv[]) {
  if (test::data_missing("parity")) return 77;
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
