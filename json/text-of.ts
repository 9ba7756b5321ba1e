const texts = new WeakMap<object, string>();

/** Returns the cached JSON text of an immutable value: a call is searched and sent as the same text. */
export function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let text = texts.get(value);
  if (text === undefined) {
    text = JSON.stringify(value);
    texts.set(value, text);
  }
  return text;
}
