/* global SwaggerUIBundle */

/** Follows the colour scheme of the system. */
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

/**
 * Plugin that leaves fields without a default empty, where Swagger UI would invent a value (such as a width of 1), and
 * does not send empty fields.
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
  // By default, Swagger UI sends the document to validator.swagger.io.
  validatorUrl: null,
});
