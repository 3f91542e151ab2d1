#define BOOST_TEST_MODULE core
#include <boost/test/unit_test.hpp>
import cape;
BOOST_AUTO_TEST_CASE(blas_kernel_is_the_best_of_the_cpu_or_the_users_choice) {
  const cape::BlasInfo info = cape::blas_info();
  BOOST_TEST_MESSAGE(cape::build_info());
  BOOST_TEST((info.chosen_by_user || info.kernel == info.cpu_best));
}
