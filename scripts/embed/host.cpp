// host.cpp -- the host as C++.
#include "host.c"
