// GCC 14 calls this destructor from units that import modules without emitting it. Compiled without
// inlining it is emitted here; only GCC builds this file (see lib/CMakeLists.txt).
#include <vector>

template class std::vector<long>;
template struct std::_Vector_base<long, std::allocator<long>>;
