/** What a schema finds wrong, in words for whoever wrote the value: a person, or a model that has to write it again. */

/** What JSON calls the library's types. */
const TYPES: Record<string, string> = { record: 'object', int: 'whole number' };

/** The library's own sentences begin so; all others were written for whoever reads them. */
const OF_LIBRARY = /^(?:Invalid (?:input|option|GUID|UUID|discriminator)\b|Too (?:big|small): )/;
const UNITS: Record<string, readonly [one: string, several: string]> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  set: ['entry', 'entries'],
  record: ['member', 'members'],
};

/** What the schema library (zod) says of one value, as far as it is read here. */
type Issue = {
  code?: string;
  message: string;
  values?: readonly unknown[];
  options?: unknown;
  inclusive?: boolean;
  maximum?: number | bigint;
  minimum?: number | bigint;
  origin?: string;
};

/**
 * zod's message of an issue with unknown members: those that the object may have. For `z.config({ customError })`, because zod tells of
 * the schema only while a message is made. Answers undefined for all other issues.
 */
export function allowedMembers({ code, inst }: { code?: string; inst?: unknown }): string | undefined {
  if (code !== 'unrecognized_keys') return undefined;
  const object = inst as { _zod?: { def?: { shape?: object } } } | undefined;
  const names = Object.keys(object?._zod?.def?.shape ?? {});
  return names.length === 0 ? 'none is allowed here' : `allowed: ${names.join(', ')}`;
}

/**
 * What is wrong with one value, as the end of a sentence that begins with its place. In the library's own words, what is not there is
 * "received undefined".
 */
export function schemaProblem(issue: Issue): string {
  const { code, message, values = [], options, inclusive, maximum, minimum, origin } = issue;
  if (!OF_LIBRARY.test(message)) return message;
  if (code === 'invalid_value') return `must be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`;
  if (code === 'invalid_union' && Array.isArray(options)) return `must be one of ${options.map(String).join(', ')}`;
  if (code === 'invalid_format') return 'must be a UUID';
  if (maximum !== undefined) return bound(inclusive === false ? 'less than' : 'at most', maximum, origin);
  if (minimum !== undefined) return bound(inclusive === false ? 'more than' : 'at least', minimum, origin);
  const [, expected, received] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (code !== 'invalid_type' || expected === undefined) return message;
  const type = TYPES[expected] ?? expected;
  const wanted = `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`;
  if (received === 'undefined') return `is missing: send ${wanted}`;
  return `must be ${wanted}${expected === 'int' && received === 'number' ? '' : `, not ${received}`}`;
}

function bound(which: string, limit: number | bigint, origin = ''): string {
  const [one, several] = UNITS[origin] ?? [];
  if (one === undefined) return `must be ${which} ${limit}`;
  return `must have ${which} ${limit} ${Number(limit) === 1 ? one : several}`;
}
