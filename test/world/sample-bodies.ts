/** Builds bodies for any route from its declaration, as valid as possible without knowing their purpose. */
import { z } from 'zod';

type JsonSchema = {
  type?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  minItems?: number;
  enum?: unknown[];
  const?: unknown;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  pattern?: string;
  format?: string;
  minimum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
};

/** Texts to try for a member of this name, the best first. */
export type Guess = (name: string) => readonly string[];

/**
 * Returns bodies that the schema accepts: with all members and with the required ones only, each with texts of `guess` for the member's name where
 * they fit. Fewer when none is valid.
 */
export function sampleBodies(body: z.ZodType, guess: Guess): unknown[] {
  const schema = z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  const made: unknown[] = [];
  for (const all of [true, false])
    for (const turn of [0, 1]) made.push(sample(schema, { root: schema, guess, all, turn }, ''));
  const different = new Map(made.map((one) => [JSON.stringify(one), one]));
  return [...different.values()].filter((one) => body.safeParse(one).success);
}

type Way = { root: JsonSchema; guess: Guess; all: boolean; turn: number };

function sample(schema: JsonSchema, way: Way, name: string): unknown {
  if (schema.$ref !== undefined) return sample(way.root.$defs?.[schema.$ref.split('/').at(-1)!] ?? {}, way, name);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[way.turn % schema.enum.length];
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return sample(choices[way.turn % choices.length]!, way, name);
  // Several patterns of one text are in `allOf`, too.
  if (schema.allOf && schema.type !== 'string')
    return Object.assign({}, ...schema.allOf.map((part) => sample(part, way, name)));
  switch (schema.type) {
    case 'object': {
      const names = Object.keys(schema.properties ?? {}).filter((one) => way.all || schema.required?.includes(one));
      return Object.fromEntries(names.map((one) => [one, sample(schema.properties![one]!, way, one)]));
    }
    case 'array':
      return way.all || (schema.minItems ?? 0) > 0 ? [sample(schema.items ?? {}, way, name.replace(/s$/, ''))] : [];
    case 'boolean':
      return way.turn === 0;
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, (schema.exclusiveMinimum ?? 0) + 1);
    case 'null':
      return null;
    default:
      return text(schema, way, name);
  }
}

const FORMS: Record<string, string> = {
  email: 'somebody@acme.example',
  uuid: '00000000-0000-4000-8000-000000000000',
  'date-time': '2026-01-01T00:00:00.000Z',
  uri: 'https://acme.example/',
};

function text(schema: JsonSchema, way: Way, name: string): string {
  const patterns = [schema, ...(schema.allOf ?? [])].flatMap(({ pattern }) => pattern ?? []);
  const fits = (one: string) =>
    patterns.every((pattern) => new RegExp(pattern, 'u').test(one)) &&
    one.length >= (schema.minLength ?? 0) &&
    one.length <= (schema.maxLength ?? Number.POSITIVE_INFINITY);
  const guessed = [...way.guess(name), '/items', 'x'.repeat(Math.max(1, schema.minLength ?? 1)), 'a'.repeat(64), '*'];
  const formed = schema.format === undefined ? undefined : FORMS[schema.format];
  const hasForm = schema.format === 'email' || schema.format === 'uri';
  return (hasForm ? formed : undefined) ?? guessed.find(fits) ?? formed ?? 'x';
}
