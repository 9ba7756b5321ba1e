/**
 * Validates an event against the sources of OCSF (a checkout of its schema), where `OCSF_SCHEMA` names one: attributes, types, enumerations,
 * requirements.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

type Attribute = {
  type?: string;
  is_array?: boolean;
  requirement?: string;
  profile?: string | null;
  enum?: Record<string, { caption: string }>;
  '@deprecated'?: unknown;
};
type Definition = {
  name: string;
  extends?: string;
  attributes: Record<string, Attribute> & { $include?: string | string[] };
  constraints?: { at_least_one?: string[] };
};
type Resolved = { attributes: Record<string, Attribute>; atLeastOne: readonly string[] };

const INTEGERS = new Set(['integer_t', 'long_t', 'timestamp_t', 'port_t']);

/** Returns a function that lists everything that is wrong with an event of this class; `profiles`: those that it may use. */
export function readOcsf(folder: string, className: string, profiles: readonly string[]): (event: object) => string[] {
  const read = (path: string) => JSON.parse(readFileSync(join(folder, path), 'utf8'));
  const all = (path: string): Map<string, Definition> =>
    new Map(
      (readdirSync(join(folder, path), { recursive: true }) as string[])
        .filter((name) => name.endsWith('.json'))
        .map((name) => read(join(path, name)) as Definition)
        .map((one) => [one.name, one]),
    );
  const dictionary: Record<string, Attribute> = read('dictionary.json').attributes;
  const [objects, classes] = [all('objects'), all('events')];

  const resolve = (table: Map<string, Definition>, name: string): Resolved => {
    const { extends: base, attributes, constraints } = table.get(name)!;
    const { $include = [], ...own } = attributes;
    const before = base !== undefined && table.has(base) ? resolve(table, base) : { attributes: {}, atLeastOne: [] };
    const included = [$include].flat().map((path): Record<string, Attribute> => {
      const profile = read(path);
      return Object.fromEntries(
        Object.entries(profile.attributes as Record<string, Attribute>).map(([key, value]) => [
          key,
          { ...value, profile: profile.name },
        ]),
      );
    });
    const merged: Record<string, Attribute> = { ...before.attributes };
    for (const part of [...included, own])
      for (const [key, value] of Object.entries(part))
        merged[key] = {
          ...merged[key],
          ...value,
          ...(value.enum && { enum: { ...merged[key]?.enum, ...value.enum } }),
        };
    return { attributes: merged, atLeastOne: constraints?.at_least_one ?? before.atLeastOne };
  };

  const check = (value: unknown, { attributes, atLeastOne }: Resolved, at: string): string[] => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at} is no object`];
    const here = (key: string) => (at === '' ? key : `${at}.${key}`);
    const isUsable = ({ profile }: Attribute) => !profile || profiles.includes(profile);
    const missing = Object.entries(attributes)
      .filter(([key, one]) => one.requirement === 'required' && isUsable(one) && !(key in value))
      .map(([key]) => `${here(key)} is missing`);
    const none =
      atLeastOne.length > 0 && !atLeastOne.some((key) => key in value) ? [`${at} has none of ${atLeastOne}`] : [];
    const wrong = Object.entries(value).flatMap(([key, member]) => {
      const local = attributes[key];
      if (!local || !isUsable(local)) return [`${here(key)} is no attribute`];
      const known = { ...dictionary[key], ...local, enum: { ...dictionary[key]?.enum, ...local.enum } };
      const deprecated = '@deprecated' in known ? [`${here(key)} is deprecated`] : [];
      const values = known.is_array ? (member as unknown[]) : [member];
      return [...deprecated, ...values.flatMap((one) => checkValue(one, known, here(key)))];
    });
    return [...missing, ...none, ...wrong];
  };

  const checkValue = (value: unknown, { type = '', enum: values = {} }: Attribute, at: string): string[] => {
    if (Object.keys(values).length > 0 && !(String(value) in values)) return [`${at} must not be ${value}`];
    if (type === 'object' || type === 'json_t') return [];
    if (objects.has(type)) return check(value, resolve(objects, type), at);
    if (INTEGERS.has(type)) return Number.isSafeInteger(value) ? [] : [`${at} is no whole number`];
    if (type === 'boolean_t') return typeof value === 'boolean' ? [] : [`${at} is no boolean`];
    return typeof value === 'string' ? [] : [`${at} is no text`];
  };

  const whole = resolve(classes, className);
  // Attributes of every class, which the dictionary leaves to the compiler.
  for (const key of ['class_uid', 'category_uid', 'type_uid'])
    whole.attributes[key] = { ...whole.attributes[key], enum: {} };
  return (event) => check(event, whole, '');
}
