import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { ClientResponse } from './client.ts';

export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

interface Content {
  readonly schema?: object;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
interface Response {
  /** Headers of a result. */
  readonly headers?: Readonly<Record<string, object>>;
  /** Absent if the response has no body. */
  readonly content?: Readonly<Record<string, Content>>;
}
export interface Operation {
  readonly operationId: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  readonly parameters?: readonly {
    readonly name: string;
    readonly in?: string;
    readonly description?: string;
  }[];
  readonly responses: Readonly<Record<string, Response>>;
}
/** An OpenAPI document. */
export interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly headers: Readonly<Record<string, object>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
}

/** Lists all documented responses as `operation status type`. */
export function documentedResponses(document: Document): string[] {
  return listOperations(document).flatMap(({ operationId, responses }) =>
    Object.entries(responses).flatMap(([status, { content }]) =>
      Object.keys(content ?? { 'no body': {} }).map((type) => `${operationId} ${status} ${type}`),
    ),
  );
}

function listOperations({ paths }: Document): Operation[] {
  return Object.values(paths).flatMap((methods) => Object.values(methods));
}

/**
 * Returns a function that validates responses. It fails for everything that the document does not
 * describe.
 */
export function answerChecker(document: Document) {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(document, 'document');
  const validate = (schema: object, value: unknown, what: string): void => {
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/'));
    const valid = ajv.validate(absolute, value);
    expect(valid, `${what} ${JSON.stringify(value)}: ${ajv.errorsText()}`).to.equal(true);
  };

  /**
   * Validates one response.
   *
   * @returns the documented response, named as by {@link documentedResponses}
   * @throws AssertionError or Error if the document does not describe the response
   */
  return (operationId: string, { status, headers, body }: ClientResponse, hasBody = true): string => {
    const operation = listOperations(document).find((candidate) => candidate.operationId === operationId);
    const response = operation?.responses[status];
    if (!response) throw new Error(`${operationId} is not said to answer ${status}: ${body}`);

    const results = Object.keys(document.components.headers);
    const undocumented = results.filter((name) => headers.has(name) && !response.headers?.[name]);
    expect(undocumented, `headers of ${operationId} ${status}`).to.deep.equal([]);

    if (!response.content) {
      expect(body.length, `${operationId} ${status} has a body`).to.equal(0);
      return `${operationId} ${status} no body`;
    }
    const [type = ''] = (headers.get('content-type') ?? '').split(';');
    const content = response.content[type];
    if (!content) throw new Error(`${operationId} ${status} is not said to be ${type}`);
    if (hasBody) expect(body.length, `${operationId} ${status} is empty`).to.be.above(0);
    if (hasBody && content.schema && type === 'application/json')
      validate(content.schema, JSON.parse(body.toString()), 'the body');
    return `${operationId} ${status} ${type}`;
  };
}
