import type { z } from 'zod';
import type * as client from '../../src/client/library/index.ts';
import type { formFields } from '../../src/conversion/forms.ts';
import type { PublicError } from '../../src/errors.ts';
import type { Note } from '../../src/notes.ts';
import type { imageDescription } from '../../src/server/openapi/schemas.ts';

/** A type without `readonly`, which the types of zod do not have. */
type Plain<T> = T extends readonly (infer E)[]
  ? Plain<E>[]
  : T extends object
    ? { -readonly [K in keyof T]: Plain<T[K]> }
    : T;

/** True if two types are the same, otherwise false. */
type Same<A, B> =
  (<T>() => T extends Plain<A> ? 1 : 2) extends <T>() => T extends Plain<B> ? 1 : 2 ? true : false;

/** Fails the type check (`npm run types`) unless `T` is true. */
const check = <T extends true>(): T | undefined => undefined;

/** An object whose properties are all present. */
type Defined<T> = { [K in keyof T]-?: Exclude<T[K], undefined> };

type Form = z.output<ReturnType<typeof formFields>['batch']>;
/** The fields of a form, as the client has them: it has only one name of the format, and objects as variants. */
type Options = Defined<Omit<Form, 'format' | 'preset' | 'variants'>>;
type Typed = Defined<Omit<client.BatchOptions, 'preset' | 'variants'>>;

describe('the types of the client', () => {
  it('are those of the service, which the type check compares', () => {
    check<Same<Typed, Options>>();
    check<'preset' | 'variants' extends keyof client.BatchOptions ? true : false>();
    check<'variants' extends keyof Form ? true : false>();
    check<Same<client.ImageDescription, z.output<ReturnType<typeof imageDescription>>>>();
    check<Same<client.Reason, PublicError['reason']>>();
    check<Same<client.Note, Note>>();
  });
});
