/** Converts an object that is sent as multipart to what the decision uses: the same result as for the encoded bytes (parse-multipart.ts). */
import type { JsonObject, JsonValue, UnreadBody } from '../policy/facts.ts';
import { FormTree, GAPS } from './parse-form.ts';
import { FILE_NAME, knownFile, PART_NAME, unreadParts } from './parse-multipart.ts';

/** @param data an object that `partsProblem` accepts */
export function judgedParts(data: JsonObject): JsonObject | UnreadBody {
  const tree = new FormTree();
  for (const [name, values] of Object.entries(data)) {
    if (!PART_NAME.test(name)) return unreadParts('a name that is not plain');
    for (const value of [values].flat()) {
      const known = judgedPart(value);
      if (known === undefined) return unreadParts('a name of a file that is not plain');
      const problem = tree.add(name, known);
      if (problem !== undefined) return unreadParts(problem);
    }
  }
  return tree.toObject() ?? unreadParts(GAPS);
}

function judgedPart(value: JsonValue): JsonValue | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    // Line breaks as FormData writes them (WHATWG HTML, "multipart/form-data encoding algorithm").
    return String(value).replace(/\r?\n|\r/g, '\r\n');
  const { filename, data, encoding, content_type: type = 'application/octet-stream' } = value;
  // FormData writes a file without a name as a field.
  if (filename === '' || !FILE_NAME.test(String(filename))) return undefined;
  const content = Buffer.from(String(data), encoding === 'base64' ? 'base64' : 'utf8');
  return knownFile(String(filename), String(type).toLowerCase(), content);
}
