import { hash, timingSafeEqual } from 'node:crypto';

/** What a secret looks like wherever it was not asked for by `reveal()`. */
const PLACEHOLDER = '[secret]';

/**
 * A value that cannot be printed, serialised or compared by accident: a log line, an error page, `JSON.stringify` and
 * `util.inspect` all show `[secret]`. The value sits in a private field, which neither spreading nor
 * `structuredClone` nor an inspector with `customInspect: false` can see.
 */
export class Secret<T extends string | Buffer = string> {
  readonly #value: T;

  /** Takes text or bytes. Bytes are copied, so that the caller may wipe its own. */
  constructor(value: T) {
    this.#value = (typeof value === 'string' ? value : Buffer.from(value)) as T;
  }

  /** The value itself. To be called where the secret is used, and nowhere else; bytes are not to be written to. */
  reveal(): T {
    return this.#value;
  }

  /**
   * Whether the other secret, or a text or bytes from outside, is the same value. Text counts as its UTF-8 bytes.
   * Digests are compared, in constant time: how much of the two agrees does not show.
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

  /** `util.inspect` and `console.log`. The well-known symbol is shared through the registry, so nothing is imported. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return PLACEHOLDER;
  }
}
