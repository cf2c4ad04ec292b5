/** The parts of Swagger UI that the page uses. Its package has no types. */
declare module 'swagger-ui-dist/swagger-ui-bundle.js' {
  /** A component of Swagger UI, and its properties. */
  export type Component = (props: ComponentProps) => unknown;

  export interface ComponentProps {
    readonly schema: { has(name: string): boolean };
    readonly dispatchInitialValue?: boolean;
  }

  /** A response, which the interceptor can change. */
  interface SwaggerResponse {
    readonly url: string;
    text: string;
  }

  export interface System {
    readonly React: { createElement(component: Component, props: ComponentProps): unknown };
  }

  /** Renders the reference into `domNode`. */
  export default function SwaggerUI(options: {
    readonly url: string;
    readonly domNode: HTMLElement | null;
    readonly plugins: readonly ((system: System) => {
      readonly wrapComponents: Readonly<Record<string, (original: Component) => Component>>;
    })[];
    readonly deepLinking: boolean;
    readonly displayRequestDuration: boolean;
    readonly tryItOutEnabled: boolean;
    readonly defaultModelsExpandDepth: number;
    readonly responseInterceptor: (response: SwaggerResponse) => SwaggerResponse;
    readonly validatorUrl: string | null;
  }): void;
}
