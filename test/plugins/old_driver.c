/*
** A CUDA driver that is too old for the plugin. The CUDA runtime loads it by its name, libcuda.so.1.
*/
__attribute__((visibility("default"))) int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}

__attribute__((visibility("default"))) int cuDriverGetVersion(int *version) {
  *version = 11040;
  return 0;
}

__attribute__((visibility("default"))) int cuGetProcAddress(const char *name, void **address,
                                                            int version, unsigned long long flags) {
  enum { NOT_FOUND = 500 };
  (void)name;
  (void)version;
  (void)flags;
  *address = 0;
  return NOT_FOUND;
}
