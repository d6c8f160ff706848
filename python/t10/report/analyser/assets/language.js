// The language of the browser is a tag that exists, also where the browser says "en-US@posix": the plotting library
// formats numbers in it as soon as it is loaded.
"use strict";

try {
  Intl.getCanonicalLocales(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en-US" });
}
