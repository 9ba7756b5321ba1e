/** Parses options that take JSON. */
import { parseStrictJson } from '../json/strict.ts';
import { WrongUsage } from './failure.ts';
import { readText } from './read-text.ts';

/** A body as `data` of `POST /v1/actions` takes it. */
export type JsonBody = Record<string, unknown> | unknown[] | string;

/**
 * Parses a JSON object from the option itself, from the file after an `@`, or with `@-` from standard input.
 *
 * @throws WrongUsage, also for JSON that parsers interpret differently; CommandFailed for a file that cannot be read, or is not text
 */
export function readJsonObject(option: string, text: string): Record<string, unknown> {
  const body = readJsonBody(option, text, 'a JSON object');
  if (typeof body === 'string' || Array.isArray(body)) throw wrong(option, 'a JSON object');
  return body;
}

/**
 * The same for an object, a list or a text.
 *
 * @param takes what the option takes, for the error
 */
export function readJsonBody(option: string, text: string, takes = 'a JSON object, list or text'): JsonBody {
  const file = text.slice(1);
  const json = text.startsWith('@') ? (file === '-' ? readText(0, 'Standard input') : readText(file, file)) : text;
  const body = bodyIn(json);
  if (body === undefined) throw wrong(option, takes);
  // The parsed value is sent, so it has to equal what was written.
  const read = parseStrictJson(json, { nulAllowedIn: typeof body === 'string' ? [] : Object.keys(body) });
  if (!read.ok) throw new WrongUsage(`${option} cannot be sent as it is written: ${read.error}.`);
  return body;
}

const wrong = (option: string, takes: string) =>
  new WrongUsage(`${option} takes ${takes}, or @ and the name of a file with one.`);

function bodyIn(json: string): JsonBody | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'string' || (typeof value === 'object' && value !== null) ? (value as JsonBody) : undefined;
  } catch {
    return undefined;
  }
}
