import type { Secret } from '../crypto/secret.ts';

/** Returns a part of a secret that was validated when it was stored. @throws Error, without the value, when the part is missing */
export function partOf(parts: Readonly<Record<string, Secret>>, name: string): string {
  const found = parts[name];
  if (found === undefined) throw new Error(`the secret has no ${name}`);
  return found.reveal();
}
