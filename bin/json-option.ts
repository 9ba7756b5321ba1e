/** Options that take JSON. */
import { WrongUsage } from './failure.ts';
import { readText } from './read-text.ts';

/**
 * An object of JSON as it stands in an option, in the file behind an `@`, or with `@-` in standard input.
 *
 * @throws WrongUsage; CommandFailed for a file that cannot be read, or is no text
 */
export function readJsonObject(option: string, text: string): Record<string, unknown> {
  const file = text.slice(1);
  const json = text.startsWith('@') ? (file === '-' ? readText(0, 'Standard input') : readText(file, file)) : text;
  try {
    const body: unknown = JSON.parse(json);
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  } catch {}
  throw new WrongUsage(`${option} takes a JSON object, or @ and the name of a file with one.`);
}
