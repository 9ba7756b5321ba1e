/** A form (`application/x-www-form-urlencoded`) as an object, nested as Stripe and others write it: the way back of `encodeForm`. */
import { type JsonObject, type JsonValue, UnreadBody } from '../policy/facts.ts';

const MAX_FIELDS = 2_000;
const MAX_DEPTH = 16;
const NAME = /^([^[\]]+)((?:\[[^[\]]*\])*)$/;

/** Names below a name, or what stands at its end. */
type Node = Map<string, Node | string>;

const unread = (what: string): UnreadBody => new UnreadBody(`a form with ${what} is not read`);

/**
 * `a[b]=1&c[0]=x&d[]=y` is `{"a":{"b":"1"},"c":["x"],"d":["y"]}`: all values are texts. A form that two readers may take for
 * different things is not read: names with stray brackets, a name that is given twice, or once with members and once without.
 */
export function parseForm(text: string): JsonObject | UnreadBody {
  const root: Node = new Map();
  let fields = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    if (++fields > MAX_FIELDS) return unread(`more than ${MAX_FIELDS} fields`);
    const [, first, rest = ''] = NAME.exec(name) ?? [];
    if (first === undefined) return unread('a name that has stray brackets');
    const path = [first, ...Array.from(rest.matchAll(/\[([^[\]]*)\]/g), ([, inner = '']) => inner)];
    // Some readers begin another member with each such name, others go on with the last.
    if (path.slice(0, -1).includes('')) return unread('a list of objects without indices');
    if (path.length > MAX_DEPTH) return unread('names that are nested too deep');
    if (path.includes('__proto__')) return unread('a name that no object can have');
    if (!put(root, path, value)) return unread('a name that is given more than once');
  }
  return objectOf(root);
}

/** False: something else stands there. */
function put(node: Node, [name = '', ...rest]: readonly string[], value: string): boolean {
  const key = name === '' ? String(node.size) : name;
  const found = node.get(key);
  if (rest.length === 0) {
    if (found !== undefined) return false;
    node.set(key, value);
    return true;
  }
  if (typeof found === 'string') return false;
  const inner: Node = found ?? new Map();
  node.set(key, inner);
  return put(inner, rest, value);
}

const objectOf = (node: Node): JsonObject =>
  Object.fromEntries(Array.from(node, ([name, inner]) => [name, memberOf(inner)]));

function memberOf(node: Node | string): JsonValue {
  if (typeof node === 'string') return node;
  const isList = [...node.keys()].every((name, i) => name === String(i));
  return isList ? Array.from(node.values(), memberOf) : objectOf(node);
}
