/** Converts zod's issues to sentences that say what is wrong and what is allowed. */
import type { z } from 'zod';
import { didYouMean } from '../runtime/did-you-mean.ts';
import { boundsAt, descriptionAt, membersAt } from './allowed.ts';
import type { JsonSchema } from './json-schema.ts';
import { type Finding, listNames, type Path, shorten } from './problems.ts';

type Issue = z.core.$ZodIssue;

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
};

/** Most unknown names in one place that get a suggestion: finding suggestions for thousands takes long. */
const MAX_NAMES = 50;

/** `value`: the checked value; `schema`: the schema it was checked against. */
export function shapeFindings(issues: readonly Issue[], value: unknown, schema: JsonSchema): Finding[] {
  return issues.flatMap((issue) => findingsOf(issue, [], value, schema));
}

function findingsOf(issue: Issue, base: Path, root: unknown, schema: JsonSchema): Finding[] {
  const path = [...base, ...issue.path.map((part) => (typeof part === 'number' ? part : String(part)))];
  const value = valueAt(root, path);
  const belongs = () => {
    const description = descriptionAt(schema, path);
    return description === undefined ? '' : ` ${asSentence(description)}`;
  };
  switch (issue.code) {
    case 'unrecognized_keys': {
      const members = membersAt(schema, path, value);
      const more = issue.keys.length - MAX_NAMES;
      return [
        ...issue.keys.slice(0, MAX_NAMES).map(
          (key): Finding => ({
            path: [...path, key],
            at: 'key',
            message: unknownName(key, members),
          }),
        ),
        ...(more > 0 ? [{ path, message: `holds ${more} more names that are not known.` }] : []),
      ];
    }
    case 'invalid_key':
      return [{ path, at: 'key', message: `this name cannot be used: ${issue.message}.` }];
    case 'invalid_value':
      return [{ path, message: `${notAllowed(value, issue.values)}${belongs()}` }];
    case 'invalid_type':
      if (value === undefined) return [{ path, message: `is missing.${belongs()}` }];
      if (value === null) return [{ path, message: `${emptiness(issue.expected, path)}${belongs()}` }];
      return [
        {
          path,
          message: `${KINDS[issue.expected] ?? issue.expected} belongs here, not ${nameKind(value)}.${belongs()}`,
        },
      ];
    case 'invalid_union':
      return unionFindings(issue, path, root, schema, belongs);
    case 'too_big':
      if (isOwn(issue.message)) return [{ path, message: `${issue.message}.` }];
      if (isNumber(issue.origin))
        return [
          { path, message: between(schema, path, issue.inclusive === false ? 'less than' : 'at most', issue.maximum) },
        ];
      return [{ path, message: `has more than ${issue.maximum} ${unitOf(issue.origin)}.` }];
    case 'too_small':
      if (isOwn(issue.message)) return [{ path, message: `${issue.message}.` }];
      if (isNumber(issue.origin))
        return [
          { path, message: between(schema, path, issue.inclusive === false ? 'more than' : 'at least', issue.minimum) },
        ];
      return [{ path, message: `is empty or too short.${belongs()}` }];
    case 'invalid_format':
      if (issue.format === 'guid' || issue.format === 'uuid') return [{ path, message: 'must be a UUID.' }];
      return [{ path, message: `${issue.message}.` }];
    default:
      return [{ path, message: `${issue.message}.` }];
  }
}

/** Descriptions of a governance file are sentences, those of the API are not. Several findings may follow one another in one text. */
const asSentence = (description: string): string =>
  `${description.slice(0, 1).toUpperCase()}${description.slice(1)}${/[.?!:]$/.test(description) ? '' : '.'}`;

/** A name may be known to one alternative, and another member that only another alternative has. */
function unknownName(key: string, members: readonly string[]): string {
  if (members.includes(key)) return `"${shorten(key)}" does not go with the other names here; leave it out.`;
  return `"${shorten(key)}" is not known here.${didYouMean(key, members)} Allowed: ${members.join(', ')}.`;
}

/** Returns the kinds of values of the options of a choice that are no fixed values. */
const kindsOf = ({ errors }: Extract<Issue, { code: 'invalid_union' }>): string[] =>
  errors
    .flat()
    .flatMap((one) => (one.path.length === 0 && one.code === 'invalid_type' ? (KINDS[one.expected] ?? []) : []));

/** Says that a value is not one of the allowed ones, and lists those. `kinds`: of values that are allowed as well. */
function notAllowed(value: unknown, values: readonly unknown[], kinds: readonly string[] = []): string {
  const allowed = values.map(String);
  const meant = typeof value === 'string' ? didYouMean(value, allowed) : '';
  const wrong = value === undefined ? 'is missing' : `${show(value)} is not allowed`;
  const names = listNames(allowed).replace(/ and (?=[^ ]*$)/, ' or ');
  return `${wrong}; write ${[names, ...new Set(kinds)].join(', or ')}.${meant}`;
}

const isNumber = (origin: string): boolean => origin === 'number' || origin === 'int' || origin === 'bigint';

/** States both bounds of a number, so that the corrected value is valid; only the violated bound where the schema has no other. */
function between(schema: JsonSchema, path: Path, missed: string, bound: number | bigint): string {
  const bounds = boundsAt(schema, path);
  return bounds === undefined ? `must be ${missed} ${bound}.` : `must be between ${bounds.least} and ${bounds.most}.`;
}

/** Explains a choice by its most likely option, or otherwise by the choice's own description. */
function unionFindings(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  path: Path,
  root: unknown,
  schema: JsonSchema,
  belongs: () => string,
): Finding[] {
  const scored = issue.errors
    .map((issues) => ({ issues, score: unlikeliness(issues, path, root) }))
    .toSorted((a, b) => a.score - b.score);
  const [first, second] = scored;
  const clear = first !== undefined && first.score !== Number.POSITIVE_INFINITY && first.score !== second?.score;
  const value = valueAt(root, path);
  const [literal] = clear ? first.issues : [];
  if (literal?.code === 'invalid_value' && literal.path.length === 0)
    return [{ path, message: `${notAllowed(value, literal.values, kindsOf(issue))}${belongs()}` }];
  if (clear) return first.issues.flatMap((inner) => findingsOf(inner, path, root, schema));
  const wrong = value === undefined ? 'is missing; ' : '';
  if (!isOwn(issue.message) && 'options' in issue && issue.options)
    return [{ path, message: `${notAllowed(value, issue.options)}${belongs()}` }];
  if (isOwn(issue.message)) return [{ path, message: `${wrong}${issue.message}.` }];
  if (value === undefined) return [{ path, message: `is missing.${belongs()}` }];
  const missing = scored
    .filter(({ score }) => score === first?.score && score !== Number.POSITIVE_INFINITY)
    .flatMap(({ issues }) => missingMembers(issues, path, root));
  if (missing.length > 0)
    return [{ path, message: `${listNames([...new Set(missing)]).replace(' and ', ' or ')} is missing.${belongs()}` }];
  const form = typeof value === 'object' ? ' of this form' : '';
  return [{ path, message: `${nameKind(value)}${form} does not belong here.${belongs()}` }];
}

/** How unlikely an option is for a value: impossible for another type of value; an unknown name counts three times a missing one. */
function unlikeliness(issues: readonly Issue[], path: Path, root: unknown): number {
  let score = 0;
  for (const issue of issues) {
    const here = issue.path.length === 0;
    if (here && issue.code === 'invalid_type') return Number.POSITIVE_INFINITY;
    if (here && issue.code === 'invalid_value') {
      const type = typeof valueAt(root, path);
      if (issue.values.every((value) => typeof value !== type)) return Number.POSITIVE_INFINITY;
    }
    if (issue.code === 'unrecognized_keys') score += 3 * issue.keys.length;
    else if (valueAt(root, [...path, ...(issue.path as Path)]) === undefined) score += 1;
  }
  return score;
}

/** Returns the members that an option requires and the value does not have. */
const missingMembers = (issues: readonly Issue[], path: Path, root: unknown): string[] =>
  issues
    .filter((issue) => valueAt(root, [...path, ...(issue.path as Path)]) === undefined)
    .map((issue) => String(issue.path[0]));

/** Whether the message comes from our schema; zod's own messages begin with a capital letter. */
function isOwn(message: string): boolean {
  return !/^(?:Invalid|Too|Unrecognized|Expected)\b/.test(message);
}

function emptiness(expected: string, path: Path): string {
  const none = expected === 'array' ? '[]' : '{}';
  if (!['array', 'object', 'record'].includes(expected)) return 'is empty.';
  return path.length === 1
    ? `is empty. Omit the name to leave it unchanged, or write ${none} for none.`
    : `is empty; write ${none} if that is meant.`;
}

function unitOf(origin: string): string {
  return origin === 'string' ? 'characters' : origin === 'array' ? 'entries' : 'members';
}

function valueAt(root: unknown, path: Path): unknown {
  let value: unknown = root;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string | number, unknown>)[part];
  }
  return value;
}

function nameKind(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'object':
      return 'a mapping';
    case 'string':
      return 'text';
    case 'boolean':
      return `${value} (put it in quotes if it is text)`;
    default:
      return `the number ${value} (put it in quotes if it is text)`;
  }
}

function show(value: unknown): string {
  return typeof value === 'string' ? `"${shorten(value, 40)}"` : nameKind(value);
}
