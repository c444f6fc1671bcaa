// In front of the system's, whose functions the CPU device's headers define.
#pragma once
