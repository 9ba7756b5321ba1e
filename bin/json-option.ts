/** Options that take JSON. */
import { parseStrictJson } from '../json/strict.ts';
import { WrongUsage } from './failure.ts';
import { readText } from './read-text.ts';

/**
 * An object of JSON as it stands in an option, in the file behind an `@`, or with `@-` in standard input.
 *
 * @throws WrongUsage, also where two readers could take it differently; CommandFailed for a file that cannot be read, or is no text
 */
export function readJsonObject(option: string, text: string): Record<string, unknown> {
  const file = text.slice(1);
  const json = text.startsWith('@') ? (file === '-' ? readText(0, 'Standard input') : readText(file, file)) : text;
  const body = objectIn(json);
  if (!body) throw new WrongUsage(`${option} takes a JSON object, or @ and the name of a file with one.`);
  // What it is parsed to is sent, and has to be what was written.
  const read = parseStrictJson(json, { nulAllowedIn: Object.keys(body) });
  if (!read.ok) throw new WrongUsage(`${option} cannot be sent as it is written: ${read.error}.`);
  return body;
}

function objectIn(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
