/** Warns of headers of a platform's entry whose value looks like a credential: everybody who may read the file, or its export, could use it. */
import { hasValueOf } from '../policy/value-kinds.ts';
import type { Checked } from './check-document.ts';
import type { Path } from './problems.ts';

const FIELDS = ['headers', 'default_headers'] as const;

/** @param entry the platform as the file writes it */
export function checkHeaders(
  entry: Partial<Record<(typeof FIELDS)[number], unknown>>,
  path: Path,
  { warnings }: Checked,
): void {
  for (const field of FIELDS)
    for (const [name, value] of Object.entries(entry[field] ?? {}))
      if (typeof value === 'string' && hasValueOf('api_key', value))
        warnings.push({
          path: [...path, field, name],
          message:
            'looks like a key, which a governance file does not contain: give it to a connection as its secret, and replace it at the platform if this file was stored or sent anywhere.',
        });
}
