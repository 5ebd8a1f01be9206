// A library that is not a plug-in.
int answer();
int answer() {
  return 42;
}
