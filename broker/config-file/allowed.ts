/** What is allowed at a place of the document, read from the JSON Schema that editors use. */
import type { JsonSchema } from './json-schema.ts';
import type { Path } from './problems.ts';

/** Every schema that may apply at `path`: several where the document offers a choice. */
export function schemasAt(root: JsonSchema, path: Path): JsonSchema[] {
  let schemas = choices(root);
  for (const part of path) {
    schemas = schemas.flatMap((schema) => {
      const inner = typeof part === 'number' ? schema.items : memberOf(schema, part);
      return inner === undefined ? [] : choices(inner);
    });
  }
  return schemas;
}

/** The names of the members that may stand at `path`; empty where any name may. */
export function membersAt(root: JsonSchema, path: Path): string[] {
  return [...new Set(schemasAt(root, path).flatMap((schema) => Object.keys(schema.properties ?? {})))];
}

/** The least and the greatest number at `path`; undefined where the schema names none of both, or offers several numbers. */
export function boundsAt(root: JsonSchema, path: Path): { least: number; most: number } | undefined {
  const numbers = schemasAt(root, path).filter(({ type }) => type === 'integer' || type === 'number');
  const [{ minimum: least, maximum: most } = {}, another] = numbers;
  if (another !== undefined || typeof least !== 'number' || typeof most !== 'number') return undefined;
  // What any whole number is says nothing.
  return Number.isSafeInteger(most + 1) && Number.isSafeInteger(least - 1) ? { least, most } : undefined;
}

/** What belongs at `path`, in a sentence, where the schema says it. */
export function descriptionAt(root: JsonSchema, path: Path): string | undefined {
  let described: string | undefined;
  let schemas = [root];
  for (const part of path) {
    const inner = schemas.flatMap(choices).flatMap((schema) => {
      const member = typeof part === 'number' ? schema.items : memberOf(schema, part);
      return member === undefined ? [] : [member];
    });
    schemas = inner;
    described = inner.find((schema) => schema.description !== undefined)?.description;
  }
  return described;
}

function memberOf(schema: JsonSchema, name: string): JsonSchema | undefined {
  if (schema.properties && Object.hasOwn(schema.properties, name)) return schema.properties[name];
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

function choices(schema: JsonSchema): JsonSchema[] {
  const options = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  return options.length === 0 ? [schema] : options.flatMap(choices);
}
