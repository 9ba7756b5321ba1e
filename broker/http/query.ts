/** Parses the query strings of our own addresses. */
import { z } from 'zod';
import { didYouMean } from '../runtime/did-you-mean.ts';
import { present } from '../runtime/present.ts';
import { storable, UNSTORABLE } from '../wire/action.ts';
import { DateTime, parseDateTime } from '../wire/date-time.ts';
import { firstProblem } from '../wire/validation.ts';
import { Refusal } from './errors.ts';

/** Returns the unvalidated parameters of a request. */
export function queryOf(url: string): URLSearchParams {
  const mark = url.indexOf('?');
  return new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
}

/**
 * Reads the parameters that a route declares. A malformed or repeated parameter is refused. Unknown names are ignored, because proxies and browsers
 * add some; with `strict` they are refused, because with a misspelt filter the answer would silently contain everything.
 *
 * @throws Refusal invalid_request
 */
export function readQuery<Schema extends z.ZodObject>(schema: Schema, url: string, strict = false): z.output<Schema> {
  const given = queryOf(url);
  const unknown = strict ? [...given.keys()].find((name) => !Object.hasOwn(schema.shape, name)) : undefined;
  if (unknown !== undefined) {
    const known = Object.keys(schema.shape);
    // A name with other characters may be a value, which is not quoted in errors.
    const named = /^[\w.-]{1,40}$/.test(unknown) ? ` "${unknown}"` : '';
    const near = named === '' ? '' : didYouMean(unknown, known);
    throw new Refusal(
      'invalid_request',
      `Unknown query parameter${named}.${near} Allowed: ${known.join(', ') || 'none'}.`,
    );
  }
  const read = Object.keys(schema.shape).flatMap((name) => {
    const values = given.getAll(name);
    if (values.length > 1) throw new Refusal('invalid_request', `${name}: duplicate query parameter; send it once.`);
    if (!values.every(storable)) throw new Refusal('invalid_request', `${name}: ${UNSTORABLE}`);
    return values.map((value) => [name, value]);
  });
  const result = schema.safeParse(Object.fromEntries(read));
  if (!result.success) throw new Refusal('invalid_request', firstProblem(result.error));
  return result.data;
}

/** A whole number in a query; documented as an integer. */
export const wholeNumber = (least: number, most: number) => {
  const error = `a whole number from ${least} to ${most}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, error)
    .transform(Number)
    .refine((number) => number >= least && number <= most, error)
    .meta({ type: 'integer', minimum: least, maximum: most });
};

/** A UUID, in lower or upper case, normalised to lower case. */
export const uuid = (what: string) =>
  z
    .guid(`must be ${what}`)
    .transform((id) => id.toLowerCase())
    .describe(what);

/** A time (RFC 3339), converted to milliseconds since the epoch. */
export const moment = (what: string) =>
  DateTime.transform((text) => present(parseDateTime(text), 'moment')).describe(what);

/** The maximum number of items of a list. */
export const pageSize = (most: number, usual: number) =>
  wholeNumber(1, most).default(usual).describe(`maximum number; default: ${usual}`);

/** The place of an item in a list that is ordered by time. */
const PlaceInTime = z.tuple([z.int(), z.guid()]);
type PlaceInTime = { created_at: number; id: string };

export const cursorInTime = ({ created_at, id }: PlaceInTime): string => cursorOf([created_at, id]);

/** A cursor of `cursorInTime`, as the place after which a page begins. */
export const cursorParameter = z
  .string()
  .max(200)
  .transform((text, context): PlaceInTime => {
    const [created_at, id] = readCursor(PlaceInTime, text) ?? [];
    if (created_at !== undefined && id !== undefined) return { created_at, id };
    context.addIssue({ code: 'custom', message: 'not `next` of a page; begin again without it' });
    return z.NEVER;
  })
  .describe('continue here: `next` of the previous page');

/** Encodes the place after which the next page begins, so that it may hold values that a plain query cannot. */
export const cursorOf = (place: readonly unknown[]): string => Buffer.from(JSON.stringify(place)).toString('base64url');

/** Reads a cursor of `cursorOf`; undefined when it is none that `schema` accepts. */
export function readCursor<Place>(schema: z.ZodType<Place>, text: string): Place | undefined {
  let place: unknown;
  try {
    place = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  return schema.safeParse(place).data;
}
