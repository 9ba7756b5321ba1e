/** How a platform that tells of errors with a status of success says in a body that it is one (`failed_if`). */
import type { Manifest } from './manifest.ts';

/** Whether a body says what `failed_if` of the manifest names. */
export const hasSign = (sign: Manifest['failed_if'], data: unknown): boolean =>
  sign !== undefined && at(data, sign.at) === sign.is;

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** What a JSON pointer (RFC 6901) leads to; undefined: nothing. */
export const at = (value: unknown, pointer: string): unknown =>
  pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (inside, name) =>
        isObject(inside) && Object.hasOwn(inside, name) ? (inside as Record<string, unknown>)[name] : undefined,
      value,
    );
