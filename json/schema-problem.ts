/** Formats the problems that a schema finds for whoever wrote the value: a person, or a model that has to correct it. */

/** JSON's names of the library's types. */
const TYPES: Record<string, string> = { record: 'object', int: 'whole number' };

/** Matches the library's default messages; all other messages were written for users. */
const OF_LIBRARY = /^(?:Invalid (?:input|option|GUID|UUID|discriminator)\b|Too (?:big|small): )/;
const MAX_PLACE_LENGTH = 64;
const UNITS: Record<string, readonly [one: string, several: string]> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  set: ['entry', 'entries'],
  record: ['member', 'members'],
};

/** The members of an issue of the schema library (zod) that are used here. */
type Issue = {
  code?: string;
  message: string;
  values?: readonly unknown[];
  options?: unknown;
  inclusive?: boolean;
  maximum?: number | bigint;
  minimum?: number | bigint;
  origin?: string;
  path?: readonly PropertyKey[];
  errors?: readonly (readonly Issue[])[];
};

/**
 * Returns zod's message for unknown members: the names that the object may have; undefined for all other issues. For `z.config({ customError })`, because zod
 * passes the schema only while a message is created.
 */
export function allowedMembers({ code, inst }: { code?: string; inst?: unknown }): string | undefined {
  if (code !== 'unrecognized_keys') return undefined;
  const object = inst as { _zod?: { def?: { shape?: object } } } | undefined;
  const names = Object.keys(object?._zod?.def?.shape ?? {});
  return names.length === 0 ? 'none is allowed here' : `allowed: ${names.join(', ')}`;
}

/**
 * Returns the problem of one value, as the end of a sentence that begins with its place. The library's own message for a missing value would be "received
 * undefined".
 */
export function schemaProblem(issue: Issue): string {
  const { code, message, values = [], options, inclusive, maximum, minimum, origin, errors = [] } = issue;
  if (!OF_LIBRARY.test(message)) return message;
  if (code === 'invalid_value') return `must be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`;
  if (code === 'invalid_union' && Array.isArray(options)) return `must be one of ${options.map(String).join(', ')}`;
  if (code === 'invalid_format') return 'must be a UUID';
  if (maximum !== undefined) return bound(inclusive === false ? 'less than' : 'at most', maximum, origin);
  if (minimum !== undefined) return bound(inclusive === false ? 'more than' : 'at least', minimum, origin);
  if (code === 'invalid_union') return unionProblem(errors) ?? message;
  const { wanted, expected, received } = typeProblem(issue);
  if (wanted === undefined) return message;
  if (received === 'undefined') return `is missing: send ${wanted}`;
  return `must be ${wanted}${expected === 'int' && received === 'number' ? '' : `, not ${received}`}`;
}

function typeProblem({ code, message }: Issue): { wanted?: string; expected?: string; received?: string } {
  const [, expected, received] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (code !== 'invalid_type' || expected === undefined || received === undefined) return {};
  const type = TYPES[expected] ?? expected;
  return { wanted: `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`, expected, received };
}

/** Names all alternatives; if the value has the type of one of them, what is wrong within it. Undefined if the library's issues have another form. */
function unionProblem(alternatives: readonly (readonly Issue[])[]): string | undefined {
  const first = alternatives.flatMap((issues) => issues.slice(0, 1));
  const within = first.find(({ path = [] }) => path.length > 0);
  if (within)
    return `"${(within.path ?? []).map(String).join('.').slice(0, MAX_PLACE_LENGTH)}" ${schemaProblem(within)}`;
  const wanted = first.flatMap((issue) =>
    issue.code === 'invalid_value' ? (issue.values ?? []).map(String) : (typeProblem(issue).wanted ?? []),
  );
  const received = first.map((issue) => typeProblem(issue).received).find((each) => each !== undefined);
  if (wanted.length < 2) return undefined;
  const all = `${wanted.slice(0, -1).join(', ')} or ${wanted.at(-1)}`;
  if (received === 'undefined') return `is missing: send ${all}`;
  return `must be ${all}${received === undefined || received === 'string' ? '' : `, not ${received}`}`;
}

function bound(which: string, limit: number | bigint, origin = ''): string {
  const [one, several] = UNITS[origin] ?? [];
  if (one === undefined) return `must be ${which} ${limit}`;
  return `must have ${which} ${limit} ${Number(limit) === 1 ? one : several}`;
}
