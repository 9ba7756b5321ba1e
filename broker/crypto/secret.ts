import { hash, timingSafeEqual } from 'node:crypto';

/** The text in place of a secret, unless it is read with `reveal()`. */
const PLACEHOLDER = '[secret]';

/**
 * A value that cannot be printed, serialised or compared by accident: a log line, an error page, `JSON.stringify` and
 * `util.inspect` all show `[secret]`. The value is in a private field, which spreading,
 * `structuredClone` and `inspect` with `customInspect: false` cannot see.
 */
export class Secret<T extends string | Buffer = string> {
  readonly #value: T;

  /** Takes text or bytes. Bytes are copied, so that the caller may wipe its own. */
  constructor(value: T) {
    this.#value = (typeof value === 'string' ? value : Buffer.from(value)) as T;
  }

  /** Returns the value itself. Call it only where the secret is used; do not modify returned bytes. */
  reveal(): T {
    return this.#value;
  }

  /**
   * Whether the other secret, string or bytes has the same value. Strings are compared as UTF-8. Digests are compared in
   * constant time, so that timing reveals nothing.
   */
  equals(other: Secret<string | Buffer> | string | Uint8Array): boolean {
    const value = other instanceof Secret ? other.reveal() : other;
    return timingSafeEqual(hash('sha256', this.#value, 'buffer'), hash('sha256', value, 'buffer'));
  }

  toJSON(): string {
    return PLACEHOLDER;
  }

  toString(): string {
    return PLACEHOLDER;
  }

  /** For `util.inspect` and `console.log`. The symbol is in the global registry, so nothing has to be imported. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return PLACEHOLDER;
  }
}
