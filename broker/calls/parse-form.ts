/**
 * Parses a form (`application/x-www-form-urlencoded`) into an object, nested as Stripe and others write it: the inverse of `encodeForm`.
 */
import { namesCharset } from '../egress/credential-search/form.ts';
import { MAX_PARAMETERS } from '../policy/endpoint.ts';
import { type JsonObject, type JsonValue, UnreadBody } from '../policy/facts.ts';

const MAX_DEPTH = 16;
const MALFORMED = /%(?![0-9A-Fa-f]{2})/;
/** PHP truncates a name at a NUL. */
const CONTROL = /\p{Cc}/u;
const NAME = /^([^[\]]+)((?:\[[^[\]]*\])*)$/;

/** Members below a name, or a value. `pushed`: the members are ordered, as in `a[]`. */
type Node = Map<string, Node | Leaf> & { pushed?: boolean };
type Leaf = { value: JsonValue };

/** Builds an object from form fields with bracketed names. */
export class FormTree {
  readonly #root: Node = new Map();
  #fields = 0;

  /** Adds a field. Returns why two readers may read the form differently with it; undefined when they do not. */
  add(name: string, value: JsonValue): string | undefined {
    if (++this.#fields > MAX_PARAMETERS) return `more than ${MAX_PARAMETERS} fields`;
    const [, first, rest = ''] = NAME.exec(name) ?? [];
    if (first === undefined) return 'a name that has stray brackets';
    const path = [first, ...Array.from(rest.matchAll(/\[([^[\]]*)\]/g), ([, inner = '']) => inner)];
    // With `a[][b]`, some readers begin a new element at each name, others continue the last one.
    if (path.slice(0, -1).includes('')) return 'a list of objects without indices';
    if (path.length > MAX_DEPTH) return 'names that are nested too deep';
    if (path.includes('__proto__')) return 'a name that no object can have';
    if (CONTROL.test(name)) return 'a control character in a name';
    if (namesCharset(first, value)) return 'a charset of its own';
    return put(this.#root, path, value);
  }

  /** Undefined when a list has indices that do not count from 0: some readers keep them, others renumber them or take them for names. */
  toObject(): JsonObject | undefined {
    return [...this.#root.values()].some(hasGaps) ? undefined : objectOf(this.#root);
  }
}

/**
 * Parses a form: `a[b]=1&c[0]=x&d[]=y` is `{"a":{"b":"1"},"c":["x"],"d":["y"]}`; all values are texts. A form that two readers may read
 * differently is not read: stray brackets, duplicate names, a name both with and without members, a list both with and without indices,
 * unescaped semicolons, and escapes that are malformed or not UTF-8.
 */
export function parseForm(text: string): JsonObject | UnreadBody {
  // Older form parsers also end a field at a semicolon (HTML 4.01, B.2.2). Clients that encode forms escape it.
  if (text.includes(';')) return new UnreadBody('a form with a semicolon that is not escaped is not read');
  // ASP.NET decodes `%u0061` as `a`; others keep a malformed escape as it is, or reject the form.
  if (MALFORMED.test(text)) return new UnreadBody('a form with a malformed escape is not read');
  const tree = new FormTree();
  for (const [name, value] of fieldsOf(text)) {
    // Readers decode bytes that are not UTF-8 differently.
    const isLossy = name.includes('\uFFFD') || value.includes('\uFFFD');
    const problem = isLossy ? 'escapes that are not UTF-8' : tree.add(name, value);
    if (problem !== undefined) return new UnreadBody(`a form with ${problem} is not read`);
  }
  return tree.toObject() ?? new UnreadBody(`a form with ${GAPS} is not read`);
}

/** Yields the fields one by one, so that parsing stops at the limit of fields. */
function* fieldsOf(text: string): Generator<[string, string]> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('&', at);
    const field = text.slice(at, end < 0 ? text.length : end);
    if (field !== '') yield* readField(field);
    if (end < 0) return;
    at = end + 1;
  }
}

/** Decodes one field. Prefixed with `&`, because URLSearchParams drops a leading `?`. */
export const readField = (field: string): URLSearchParams => new URLSearchParams(`&${field}`);

export const GAPS = 'a list whose indices do not count from 0';
const TWICE = 'a name that is given more than once';

/** Puts a value at a path; returns why it cannot stand there. */
function put(node: Node, [name = '', ...rest]: readonly string[], value: JsonValue): string | undefined {
  const pushed = name === '';
  // Readers differ on the index of `a[]` after `a[5]` or `a[b]`, and some refuse both orders.
  if (node.size > 0 && pushed !== (node.pushed ?? false)) return 'a list with indices and without';
  node.pushed = pushed;
  const key = pushed ? String(node.size) : name;
  const found = node.get(key);
  if (rest.length === 0) {
    if (found !== undefined) return TWICE;
    node.set(key, { value });
    return undefined;
  }
  if (found !== undefined && !(found instanceof Map)) return TWICE;
  const inner: Node = found ?? new Map();
  node.set(key, inner);
  return put(inner, rest, value);
}

const objectOf = (node: Node): JsonObject =>
  Object.fromEntries(Array.from(node, ([name, inner]) => [name, memberOf(inner)]));

const isList = (node: Node): boolean => [...node.keys()].every((name, i) => name === String(i));

function hasGaps(node: Node | Leaf): boolean {
  if (!(node instanceof Map)) return false;
  const isNumbered = [...node.keys()].every((name) => /^\d+$/.test(name));
  return (isNumbered && !isList(node)) || [...node.values()].some(hasGaps);
}

function memberOf(node: Node | Leaf): JsonValue {
  if (!(node instanceof Map)) return node.value;
  return isList(node) ? Array.from(node.values(), memberOf) : objectOf(node);
}
