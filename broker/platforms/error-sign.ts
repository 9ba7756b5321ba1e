/** Detects errors that a platform sends with a status of success, by a member of the body (`failed_if`). */
import type { Manifest } from './manifest.ts';

/** Whether a body has the value that `failed_if` of the manifest names. */
export const hasSign = (sign: Manifest['failed_if'], data: unknown): boolean =>
  sign !== undefined && at(data, sign.at) === sign.is;

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Returns the value at a JSON pointer (RFC 6901); undefined when there is none. */
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
