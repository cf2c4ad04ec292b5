/** Wraps a click handler to ignore the second click of a double click, since the button may have changed its action. */
export const ignoreDoubleClick =
  (handler: () => void) =>
  ({ detail }: { readonly detail: number }): void => {
    if (detail < 2) handler();
  };
