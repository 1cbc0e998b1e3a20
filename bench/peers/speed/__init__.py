"""How fast kb and other libraries search the same passages: a module for each, with `build` and `Engine`."""
