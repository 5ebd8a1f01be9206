// A library that is no plug-in.
int answer();
int answer() {
  return 42;
}
