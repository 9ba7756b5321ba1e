/** Finds the literal credential, without encodings, at several times the speed of form-windows.ts. */
import type { FindForms, Found, Span } from './credential-search/form-search.ts';

/** Prepares the search. `secrets`: not empty. */
export function rawSearch(secrets: readonly Buffer[]): FindForms {
  return (bytes, isEnd) => {
    const spans: Span[] = [];
    let free = bytes.length;
    for (const secret of secrets) {
      for (let at = bytes.indexOf(secret); at !== -1; at = bytes.indexOf(secret, at + 1))
        spans.push({ from: at, to: at + secret.length });
      if (!isEnd) free = Math.min(free, beginningAtEnd(secret, bytes));
    }
    return { spans, free } satisfies Found;
  };
}

/** Returns where the longest prefix of the secret at the end of the bytes begins; their length if there is none. */
function beginningAtEnd(secret: Buffer, bytes: Buffer): number {
  const { length } = bytes;
  for (let at = Math.max(0, length - secret.length + 1); at < length; at++)
    if (bytes[at] === secret[0] && secret.compare(bytes, at, length, 0, length - at) === 0) return at;
  return length;
}
