/** Reads the version from package.json, whether running from source or built. */
import { readFileSync } from 'node:fs';

export function packageVersion(): string {
  for (const path of ['../package.json', '../../package.json'])
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version;
    } catch {}
  return 'unknown';
}
