/** Converts zod schemas to those of an OpenAPI 3.1 document, which are JSON Schema, draft 2020-12. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

export type JsonSchema = { [keyword: string]: unknown };

export type Schemas = {
  /** `input`: schema of a request; `output`: schema of an answer. */
  of(schema: z.ZodType, io: 'input' | 'output'): JsonSchema;
  /** Schemas that the converted ones refer to, by name: those that have an id (`.meta({ id })`), and recursive ones. */
  readonly components: Record<string, JsonSchema>;
};

/** Creates the collection for one document. Throws when two different schemas have the same id. */
export function makeSchemas(): Schemas {
  const components: Record<string, JsonSchema> = {};
  let unnamed = 0;
  const keep = (name: string, schema: JsonSchema) => {
    if (components[name] && !isDeepStrictEqual(components[name], schema))
      throw new Error(`two schemas of the OpenAPI document are called ${name}`);
    components[name] = schema;
  };
  return {
    components,
    of: (schema, io) => {
      const {
        $schema: _draft,
        $defs = {},
        ...whole
      } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override });
      const named = Object.entries($defs).map(([id, definition]) => {
        const name = id.startsWith('__') ? `Unnamed${++unnamed}` : id;
        return { id, name, definition: definition as JsonSchema };
      });
      const settled = (part: JsonSchema) => renamed(part, new Map(named.map(({ id, name }) => [id, name])));
      for (const { name, definition } of named) keep(name, settled(definition));
      const { id, ...rest } = settled(whole);
      if (typeof id !== 'string') return rest;
      keep(id, rest);
      return { $ref: `#/components/schemas/${id}` };
    },
  };
}

function renamed(schema: JsonSchema, names: ReadonlyMap<string, string>): JsonSchema {
  return JSON.parse(
    JSON.stringify(schema, (keyword, value) => {
      if (keyword !== '$ref' || typeof value !== 'string') return value;
      const id = value.replace('#/$defs/', '');
      return `#/components/schemas/${names.get(id) ?? id}`;
    }),
  );
}

/** Removes redundant keywords, and keywords that would forbid further members in our answers. */
function override({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: JsonSchema }): void {
  const { def } = zodSchema._zod;
  if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties;
  for (const { _zod } of def.checks ?? []) {
    const { pattern } = _zod.def as { pattern?: RegExp };
    if (pattern?.ignoreCase)
      throw new Error(`a pattern of JSON Schema has no flags, so it would not accept all of ${pattern}`);
  }
  if (jsonSchema.format !== undefined || jsonSchema.type === 'integer') delete jsonSchema.pattern;
  if (isDeepStrictEqual(jsonSchema.propertyNames, { type: 'string' })) delete jsonSchema.propertyNames;
}
