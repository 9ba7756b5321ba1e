/** Identifies this build: the package's version, and what `npm run build` wrote beside the compiled files. */
import { readFileSync } from 'node:fs';

export type Build = { version: string; sha: string; builtAt: string | null };

function readJson(url: URL): Record<string, unknown> | undefined {
  try {
    return JSON.parse(readFileSync(url, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Reads package.json, which is one level up from the sources and two from the compiled files. */
export function readBuild(): Build {
  const info = readJson(new URL('../build-info.json', import.meta.url));
  const manifest = [new URL('../package.json', import.meta.url), new URL('../../package.json', import.meta.url)]
    .map(readJson)
    .find((found) => found?.name === 'agent-broker');
  return {
    version: String(manifest?.version ?? '0.0.0'),
    sha: String(info?.sha ?? 'unknown'),
    builtAt: info?.builtAt ? String(info.builtAt) : null,
  };
}
