#pragma once
#include "Basics.hpp"
