/** JSON pointers (RFC 6901, with `*` for each member of a list or object) into the values that an agent sends. */
import type { JsonValue } from '../../json/json-value.ts';
import { foldName } from './names.ts';

/** RFC 6901, with `*` for every element of a list or member of an object. */
export const POINTER = /^(?:\/(?:[^~/]|~[01])*)+$/;

export type Visitor = {
  /** `listed`: the value is in a list, or under a `*`. */
  value(value: JsonValue, listed: boolean): void;
  /** An element of a list, or a value in place of a list, under which the rest of the pointer is not found. */
  deadEnd(value: JsonValue): void;
  /** A null; without this callback, a null under a `*` or in a list is a dead end, and any other null is ignored. */
  unset?(): void;
};

/** Returns the folded names of a pointer that matches `POINTER`; `*` is kept. */
export function pointerNames(pointer: string): string[] {
  return pointer
    .slice(1)
    .split('/')
    .map((name) => (name === '*' ? name : foldName(name.replaceAll('~1', '/').replaceAll('~0', '~'))));
}

/**
 * Walks to the values under a pointer. Where the call has another shape than the pointer (one text for a list, a list for one member), the platform may
 * accept it, so the walk does, too. Names of members match in any spelling, as on some servers.
 */
export function walkPointer(value: JsonValue, names: readonly string[], visitor: Visitor): void {
  walk(value, names, 0, false, visitor);
}

function walk(value: JsonValue, names: readonly string[], at: number, listed: boolean, visitor: Visitor): void {
  const name = names[at];
  if (value === null) {
    if (visitor.unset) visitor.unset();
    else if (listed) visitor.deadEnd(value);
  } else if (Array.isArray(value)) {
    const past = name === '*' || (name !== undefined && /^[0-9]+$/.test(name)) ? at + 1 : at;
    if (listed && value.length === 0) visitor.deadEnd(value);
    for (const member of value) walk(member, names, past, true, visitor);
  } else if (typeof value !== 'object' || name === undefined) {
    visitor.value(value, listed);
  } else {
    const members = Object.entries(value).filter(([member]) => name === '*' || foldName(member) === name);
    const within = listed || name === '*';
    if (within && members.length === 0) visitor.deadEnd(value);
    for (const [, inner] of members) walk(inner, names, at + 1, within, visitor);
  }
}
