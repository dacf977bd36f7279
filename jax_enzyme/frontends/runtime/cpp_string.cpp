// std::string: libc++ keeps its instance of basic_string in its own binary.
// provides: _ZN?K?St3__112basic_stringIc\w+ _ZN?K?NSt3__112basic_stringIc\w+
#include <string>

template class std::basic_string<char>;
