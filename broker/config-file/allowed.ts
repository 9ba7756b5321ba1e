/** Looks up what is allowed at a path of the document, in the JSON Schema that editors use. */
import type { JsonSchema } from './json-schema.ts';
import type { Path } from './problems.ts';

/** Returns every schema that may apply at `path`: several where the document offers a choice. */
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

/**
 * Returns the names of the members allowed at `path`; empty where any name is allowed. Of several alternatives, those count whose fixed members, such as the
 * type of a credential, have the values of `given`, the object at `path`.
 */
export function membersAt(root: JsonSchema, path: Path, given?: unknown): string[] {
  const schemas = schemasAt(root, path);
  const meant = schemas.filter((schema) => isMeant(schema, given));
  return [...new Set((meant.length > 0 ? meant : schemas).flatMap((schema) => Object.keys(schema.properties ?? {})))];
}

function isMeant({ properties = {} }: JsonSchema, given: unknown): boolean {
  if (typeof given !== 'object' || given === null) return true;
  return Object.entries(given).every(([name, value]) => {
    const fixed = Object.hasOwn(properties, name) ? properties[name]?.const : undefined;
    return fixed === undefined || fixed === value;
  });
}

/** Returns the smallest and the largest number allowed at `path`; undefined where the schema has neither, or offers several numbers. */
export function boundsAt(root: JsonSchema, path: Path): { least: number; most: number } | undefined {
  const numbers = schemasAt(root, path).filter(({ type }) => type === 'integer' || type === 'number');
  const [{ minimum: least, maximum: most } = {}, another] = numbers;
  if (another !== undefined || typeof least !== 'number' || typeof most !== 'number') return undefined;
  // The bounds of safe integers are no useful information.
  return Number.isSafeInteger(most + 1) && Number.isSafeInteger(least - 1) ? { least, most } : undefined;
}

/** Returns the schema's description of what belongs at `path`, if there is one. */
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
