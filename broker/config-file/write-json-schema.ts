/**
 * Rewrites governance.schema.json after a change of the schema:
 * `node broker/config-file/write-json-schema.ts && biome format --write governance.schema.json`
 */
import { writeFileSync } from 'node:fs';
import { governanceJsonSchema } from './json-schema.ts';

writeFileSync(
  new URL('../../governance.schema.json', import.meta.url),
  `${JSON.stringify(governanceJsonSchema(), null, 2)}\n`,
);
