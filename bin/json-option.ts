/** Options that take JSON. */
import { readFileSync } from 'node:fs';
import { CommandFailed, WrongUsage } from './failure.ts';

/**
 * An object of JSON as it stands in an option, in the file behind an `@`, or with `@-` in standard input.
 *
 * @throws WrongUsage; CommandFailed for a file that cannot be read
 */
export function readJsonObject(option: string, text: string): Record<string, unknown> {
  let json = text;
  if (text.startsWith('@')) {
    try {
      json = readFileSync(text === '@-' ? 0 : text.slice(1), 'utf8');
    } catch {
      throw new CommandFailed(`${text.slice(1)} cannot be read.`);
    }
  }
  try {
    const body: unknown = JSON.parse(json);
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  } catch {}
  throw new WrongUsage(`${option} takes a JSON object, or @ and the name of a file with one.`);
}
