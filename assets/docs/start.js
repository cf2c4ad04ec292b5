/* global SwaggerUIBundle */

/** Dark where the system is. */
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

/**
 * A field that has no default starts empty, where the viewer would make a value up: a width of 1, for one. And what
 * is empty is not sent.
 */
const startEmpty = ({ React }) => ({
  wrapComponents: {
    JsonSchemaForm: (Original) => (props) =>
      React.createElement(Original, {
        ...props,
        dispatchInitialValue: props.dispatchInitialValue && props.schema.has('default'),
      }),
    ParameterIncludeEmpty: () => () => null,
  },
});

SwaggerUIBundle({
  url: '/api/v1/openapi.json',
  domNode: document.getElementById('reference'),
  plugins: [startEmpty],
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  // Otherwise it would ask a server of its makers what it thinks of the document.
  validatorUrl: null,
});
