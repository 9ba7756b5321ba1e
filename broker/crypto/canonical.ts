import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';

/**
 * Canonical JSON of a value (RFC 8785), for hashing and signing.
 * @throws Error for values without one: undefined, NaN, an infinity, a lone surrogate, a cycle
 */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('This value cannot be serialised as JSON.');
  return text;
}

/**
 * Returns a canonicaliser for flat rows, limited to members with one of these names: about twice as fast as `canonicalJson`, since names are sorted and
 * encoded once. A row with a nested value falls back to `canonicalJson` of these members, so that the result is always the same.
 * @param names each at most once
 */
export function createMembersCanonicalizer(
  names: readonly string[],
): (row: Readonly<Record<string, unknown>>) => string {
  const unsafe = names.find((name) => name in Object.prototype || name === 'toJSON' || !name.isWellFormed());
  if (unsafe !== undefined) throw new TypeError(`A row cannot have a member ${JSON.stringify(unsafe)}.`);
  // RFC 8785 section 3.2.3: by UTF-16 code units, which is what `toSorted` compares.
  const members = names.toSorted().map((name) => ({ name, prefix: `${JSON.stringify(name)}:` }));
  return (row) => {
    let text = '';
    for (const { name, prefix } of members) {
      const value = row[name];
      if (value === undefined) continue;
      const encoded = encodeFlat(value);
      if (encoded === undefined) return canonicalJson(Object.fromEntries(names.map((each) => [each, row[each]])));
      text += text === '' ? prefix + encoded : `,${prefix}${encoded}`;
    }
    return `{${text}}`;
  };
}

/** JSON of a string, finite number, boolean or null; undefined for everything else. */
function encodeFlat(value: unknown): string | undefined {
  if (value === null) return 'null';
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? JSON.stringify(value) : undefined;
    case 'number':
      // RFC 8785 section 3.2.2.3 uses ECMAScript's number to string conversion.
      return Number.isFinite(value) ? `${value}` : undefined;
    case 'boolean':
      return value ? 'true' : 'false';
    default:
      return undefined;
  }
}

/** SHA-256 of bytes, or of text as UTF-8: 64 hexadecimal digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** SHA-256 of bytes, or of text as UTF-8: 43 characters of base64url. */
export function sha256Base64url(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url');
}
