/** Equality of JSON values: the order of members is ignored, all else is compared. */
import type { JsonValue } from '../../json/json-value.ts';

/** Pure and recursive; the depth is limited by the JSON parser. */
export function sameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return Object.is(a, b);
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((one, i) => sameJson(one, b[i]));
  }
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && sameJson(a[name], b[name]));
}
