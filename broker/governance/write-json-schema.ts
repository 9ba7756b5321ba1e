/** Writes governance.schema.json anew: `node broker/governance/write-json-schema.ts`, after a change of the schema. */
import { writeFileSync } from 'node:fs';
import { governanceJsonSchema } from './json-schema.ts';

writeFileSync(
  new URL('../../governance.schema.json', import.meta.url),
  `${JSON.stringify(governanceJsonSchema(), null, 2)}\n`,
);
