/** @module Starts Swagger UI with the API reference of this server. */
// @ts-expect-error: the package has no types
import SwaggerUI from 'swagger-ui-dist/swagger-ui-bundle.js';

/** A component of Swagger UI for a field of a form. */
type Field = (props: {
  readonly schema: { has(name: string): boolean };
  readonly dispatchInitialValue?: boolean;
}) => unknown;

/** React, as Swagger UI passes it to plugins. */
interface React {
  createElement(type: unknown, props: object | null, ...children: readonly unknown[]): unknown;
  useState<T>(initial: T): [T, (value: T) => void];
}

/** The parts of an operation, as Swagger UI stores them. */
interface Operation {
  readonly parameters?: Parts;
  readonly responses?: Parts;
}
interface Parts {
  filter(test: (part: ReadonlyMap<string, unknown>, key: unknown) => boolean): { readonly size: number };
}

/** Follows the colour scheme of the system. */
const dark = matchMedia('(prefers-color-scheme: dark)');
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followScheme);
followScheme();

/** Plugin: fields without a default are empty and not sent. Swagger UI would invent a value. */
const startEmpty = ({ React }: { readonly React: React }) => ({
  wrapComponents: {
    JsonSchemaForm:
      (original: Field): Field =>
      (props) =>
        React.createElement(original, {
          ...props,
          dispatchInitialValue: Boolean(props.dispatchInitialValue) && props.schema.has('default'),
        }),
    ParameterIncludeEmpty: () => () => null,
  },
});

/**
 * Plugin that collapses what most readers do not need: the parameters of the query, which repeat
 * the fields of the form for requests whose body is an image, the headers of responses, and the
 * errors.
 */
const collapse = ({ React }: { readonly React: React }) => {
  /** Wraps a component, so that a button shows the rows that the style sheet hides. */
  const collapsed =
    (name: string, countIn: (operation: Operation) => number, label: (count: number) => string) =>
    (original: unknown) =>
    (props: Operation): unknown => {
      const [isOpen, setOpen] = React.useState(false);
      const count = countIn(props);
      const content = React.createElement(original, props);
      if (count === 0) return content;
      const toggle = { type: 'button', 'aria-expanded': isOpen, onClick: () => setOpen(!isOpen) };
      return React.createElement(
        'div',
        { className: isOpen ? undefined : `without-${name}` },
        React.createElement('button', { ...toggle, className: 'collapse-toggle' }, label(count)),
        content,
      );
    };
  return {
    wrapComponents: {
      parameters: collapsed(
        'query',
        ({ parameters }) => parameters?.filter((one) => one.get('in') === 'query').size ?? 0,
        (count) => `The image itself as the body, with ${count} parameters in the query instead of a form`,
      ),
      responses: collapsed(
        'errors',
        ({ responses }) => responses?.filter((_, status) => Number(status) >= 400).size ?? 0,
        (count) => `Headers, and errors with ${count} statuses`,
      ),
    },
  };
};

const ui = SwaggerUI({
  url: 'api/v1/openapi.json',
  domNode: document.getElementById('reference'),
  plugins: [startEmpty, collapse],
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  // A proxy can hide the address of the page from the server, and its path.
  responseInterceptor(response: { readonly url: string; text: string }) {
    if (response.url.endsWith('/openapi.json')) {
      const { origin } = new URL(JSON.parse(response.text).servers[0].url);
      response.text = response.text.replaceAll(`${origin}/`, new URL('./', location.href).href);
    }
    return response;
  },
  // By default, Swagger UI sends the document to validator.swagger.io.
  validatorUrl: null,
});

/** Opens the operation of a link, and shows the field that the link names. */
async function follow(link: HTMLAnchorElement): Promise<void> {
  const [, tag = '', operation = ''] = link.hash.split('/');
  ui.layoutActions.show(['operations', tag, operation], true);
  const block = `#operations-${tag}-${operation}`;
  const { field } = link.dataset;
  const target = field ? `${block} [data-property-name="${field}"]` : block;
  // Swagger UI draws the operation in one of the next frames.
  for (let frame = 0; frame < MAX_FRAMES; frame += 1) {
    const found = document.querySelector(target);
    if (found) return found.scrollIntoView();
    await new Promise(requestAnimationFrame);
  }
}

/** Frames after which an operation is drawn at the latest: a few seconds. */
const MAX_FRAMES = 300;

document.querySelector('.contents')?.addEventListener('click', ({ target }) => {
  if (target instanceof HTMLAnchorElement) void follow(target);
});
