/** What a press does, unless it is the second of a double click: by then the button may mean the opposite. */
export const ignoreDoubleClick =
  (act: () => void) =>
  ({ detail }: { readonly detail: number }): void => {
    if (detail < 2) act();
  };
