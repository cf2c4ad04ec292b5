/** @module Starts Swagger UI with the API reference of this server. */
// @ts-expect-error: the package has no types
import SwaggerUI from 'swagger-ui-dist/swagger-ui-bundle.js';

/** A component of Swagger UI for a field of a form. */
type Field = (props: {
  readonly schema: { has(name: string): boolean };
  readonly dispatchInitialValue?: boolean;
}) => unknown;

/** Follows the colour scheme of the system. */
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

/**
 * Plugin that leaves fields without a default empty, where Swagger UI would invent a value (such as a width of 1), and
 * does not send empty fields.
 */
const startEmpty = ({ React }: { readonly React: { createElement: (...args: unknown[]) => unknown } }) => ({
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

SwaggerUI({
  url: 'api/v1/openapi.json',
  domNode: document.getElementById('reference'),
  plugins: [startEmpty],
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
