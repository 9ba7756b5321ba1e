import type { Secret } from '../crypto/secret.ts';

/** A part of a secret that was checked when it was given. @throws Error without its value when it is not there */
export function partOf(parts: Readonly<Record<string, Secret>>, name: string): string {
  const found = parts[name];
  if (found === undefined) throw new Error(`the secret has no ${name}`);
  return found.reveal();
}
