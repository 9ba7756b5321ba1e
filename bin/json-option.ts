/** Parses options that take JSON. */
import { parseStrictJson } from '../json/strict.ts';
import { WrongUsage } from './failure.ts';
import { readText } from './read-text.ts';

/**
 * Parses a JSON object from the option itself, from the file after an `@`, or with `@-` from standard input.
 *
 * @throws WrongUsage, also for JSON that parsers interpret differently; CommandFailed for a file that cannot be read, or is not text
 */
export function readJsonObject(option: string, text: string): Record<string, unknown> {
  const file = text.slice(1);
  const json = text.startsWith('@') ? (file === '-' ? readText(0, 'Standard input') : readText(file, file)) : text;
  const body = objectIn(json);
  if (!body) throw new WrongUsage(`${option} takes a JSON object, or @ and the name of a file with one.`);
  // The parsed value is sent, so it has to equal what was written.
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
